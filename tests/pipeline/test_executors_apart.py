"""Executors that share no folder with the driver, and have what is sent to them alone."""

from __future__ import annotations

import csv
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs
import pyarrow
import pytest

from gossamer.sim.results.storage.place import LocalPlace, Place, place_of
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.sim.results.sweeps.plan import read_sweep
from gossamer.spark.gateway import find_java_home
from gossamer.spark.shipping.packing import ENVIRONMENT_FILE, ZIP_FILE, make_package, package_files
from gossamer.spark.sweep.task import finished_points
from support import checkout, spark_results
from support.draws import Draws
from support.object_store import BUCKET, ObjectStore, object_store
from support.spark_processes import (
    HUNG_S,
    Cluster,
    apart_from,
    environment,
    kill_group,
    kill_spark_when,
    run_spark_command,
    run_spark_well,
    sentences,
    spark_home,
    standalone_cluster,
    start_spark_command,
)

pytestmark = pytest.mark.campaign
SIZE = ("--subscriptions", "3000", "--events", "2000", "--partitions", "3")
# Points of examples/spark/sizes.toml, which `--draws` asks for: some minutes.
ALL_POINTS = 60
MEMORY = ("--memory", "1g")
WORKLOAD = ("workload", "vinifera", *SIZE)
ENVIRONMENT = "environment"


@attrs.frozen
class Apart:
    """A cluster of two workers, an object store, and what was packed for executors."""

    cluster: Cluster
    store: ObjectStore
    packed: Path
    scratch: Path

    def place(self, name: str) -> RemotePlace:
        found = place_of(f"s3a://{BUCKET}/{name}", self.store.options())
        assert isinstance(found, RemotePlace)
        return found

    def options(self) -> list[str]:
        return ["--master", self.cluster.master, *self.store.conf()]

    def whole_environment(self) -> list[str]:
        """Of commands that send all that tasks need, which each executor unpacks: 7,000 files."""
        return [
            *("--archives", f"{self.packed / ENVIRONMENT_FILE}#{ENVIRONMENT}"),
            f"--conf=spark.pyspark.python=./{ENVIRONMENT}/bin/python",
        ]

    def package_alone(self) -> list[str]:
        """Of commands that send our code, where executors have what it depends on."""
        return ["--py-files", str(self.packed / ZIP_FILE), self.python_without_gossamer()]

    def python_without_gossamer(self, *first: Path) -> str:
        folders = [*map(str, first), str(Path(pyarrow.__file__).parent.parent)]
        script = self.scratch / f"python-{len(first)}"
        base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
        path = shlex.quote(":".join(folders))
        script.write_text(
            f'#!/bin/sh\nexport PYTHONPATH={path}${{PYTHONPATH:+:$PYTHONPATH}}\nexec {base} "$@"\n'
        )
        script.chmod(0o755)
        return f"--conf=spark.pyspark.python={script}"


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    """Workers with a file system of their own where the driver works, and no sources."""
    pytest.importorskip("pyspark", reason="needs Spark: pip install '.[spark]'")
    ours = tmp_path_factory.mktemp("ours")
    scratch = tmp_path_factory.mktemp("cluster")
    packed = ours / "packed"
    make_package(LocalPlace(packed))
    with (
        object_store() as store,
        standalone_cluster(
            scratch, find_java_home(scratch), 2, apart_from(ours), PYTHONPATH=""
        ) as cluster,
    ):
        yield Apart(cluster, store, packed, scratch)


def run_with_a_loss(apart: Apart, sign: str, *arguments: str) -> str:
    """Run a command on the cluster, and kill a worker at work when its progress says so."""
    told: list[str] = []
    printed: list[str] = []
    killed = False
    with start_spark_command(*arguments, *apart.options()) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            reading = threading.Thread(target=printed.extend, args=(process.stdout,))
            reading.start()
            for line in process.stderr:
                told.append(line)
                if not killed and sign in line:
                    apart.cluster.kill_busy_worker()
                    killed = True
            code = process.wait(HUNG_S)
            reading.join()
        except BaseException:
            kill_group(process)
            raise
    assert killed, f"it ended before it had begun: {told}"
    assert (code, sentences("".join(told))) == (0, [])
    return "".join(printed)


def rows_of(crunched: Place) -> list[list[dict[str, str]]]:
    """Measures and intervals, without where the runs lie."""
    found = []
    for table in ("measures.csv", "intervals.csv"):
        rows = csv.DictReader((crunched / table).read_bytes().decode().splitlines())
        found.append([{key: value for key, value in row.items() if key != "run"} for row in rows])
        assert found[-1]
    return found


def test_killed_workers_or_driver_change_nothing(
    apart: Apart, tmp_path: Path, draws: Draws
) -> None:
    full = len(draws.numbers(0)) >= ALL_POINTS
    enough = 30 if full else 3
    sent = apart.whole_environment() if full else apart.package_alone()
    workload, sweep, crunched = (apart.place(name) for name in ("w", "s", "c"))
    by_hand = {name: tmp_path / "here" / name for name in ("w", "s", "c")}
    by_hand["w"].parent.mkdir()

    environment = apart.whole_environment()
    run_with_a_loss(apart, "subscriptions 0 of 3", *WORKLOAD, "--out", str(workload), *environment)
    run_spark_well(*WORKLOAD, "--out", str(by_hand["w"]), *MEMORY)
    for table in ("subscriptions", "events"):
        files = {file.name: file.read_bytes() for file in (by_hand["w"] / table).iterdir()}
        assert {one.name: one.read_bytes() for one in (workload / table).tables()} == files
        assert len(files) == 3

    small = spark_results.sweep_file(tmp_path, 4, more="[grid]\nnodes = [20, 24]\n")
    file = checkout.ROOT / "examples" / "spark" / "sizes.toml" if full else small
    points = len(read_sweep(file).points)
    resumable = ("sweep", str(file), "--out", str(sweep), *sent)
    kill_spark_when(
        lambda: len(finished_points(sweep)) >= enough,
        *(*resumable, *apart.options()),
        scratch=tmp_path / "killed",
    )
    there = len(finished_points(sweep))
    assert enough <= there < points
    told = run_with_a_loss(apart, f" of {points} points", *resumable, "--resume")
    # Executors may end what they were at without the driver.
    ran = re.search(rf"{points} points: (\d+) ran", told)
    assert ran is not None
    assert 0 < int(ran[1]) <= points - there
    run_spark_well("sweep", str(file), "--out", str(by_hand["s"]), *MEMORY)
    assert (sweep / "points.csv").read_bytes() == (by_hand["s"] / "points.csv").read_bytes()

    results = (str(workload), str(sweep))
    run_with_a_loss(apart, "0 of", "crunch", *results, "--out", str(crunched), "--no-plots", *sent)
    results = (str(by_hand["w"]), str(by_hand["s"]))
    run_spark_well("crunch", *results, "--out", str(by_hand["c"]), "--no-plots", *MEMORY)
    assert rows_of(crunched) == rows_of(LocalPlace(by_hand["c"]))


def test_executors_without_the_package_or_with_another_version_are_refused(apart: Apart) -> None:
    other = apart.scratch / "other"
    for file in package_files():
        path = other / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
    with (other / "gossamer" / "sim" / "errors.py").open("a") as stream:
        stream.write("# Another one.\n")
    need = "'gossamer spark package' makes what executors need"
    for name, python, expected in (
        ("n", apart.python_without_gossamer(), rf"executors have no gossamer \(on .*; {need}"),
        ("o", apart.python_without_gossamer(other), "executors have code of gossamer "),
    ):
        out = apart.place(name)
        done = run_spark_command(*WORKLOAD, "--out", str(out), python, *apart.options())
        assert done.returncode == 2
        (sentence,) = sentences(done.stderr)
        assert re.search(f"where {expected}", sentence)
        assert out.files() == []


def test_files_that_are_not_there_are_refused(apart: Apart) -> None:
    for option in ("--py-files", "--archives"):
        done = run_spark_command("workload", "siena", "--out", "w", option, "absent.zip#x")
        assert done.returncode == 2
        assert sentences(done.stderr) == [f"gossamer: {option} is 'absent.zip#x', expected a file"]
    assert apart.packed.is_dir()


def test_spark_submit_sends_the_environment(apart: Apart, tmp_path: Path) -> None:
    program = tmp_path / "driver.py"
    main = "sys.exit(main(['spark', *sys.argv[1:]]))"
    program.write_text(f"import sys; from gossamer.command.main import main; {main}")
    home = spark_home()
    out = apart.place("submitted")
    command = [str(home / "bin" / "spark-submit"), "--master", apart.cluster.master]
    command += ["--driver-memory", "1g", f"--conf=spark.pyspark.driver.python={sys.executable}"]
    command += [*apart.whole_environment(), str(program)]
    command += ["workload", "covering", "--out", str(out), *SIZE, *apart.store.conf()]
    java = {"JAVA_HOME": str(find_java_home(tmp_path)), "SPARK_LOCAL_IP": "127.0.0.1"}
    env = environment(SPARK_HOME=str(home), **java)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (out / "workload.json").exists()
