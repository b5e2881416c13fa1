"""Executors that share no folder with the driver, and have what is sent to them alone."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pyarrow
import pytest

from gossamer.sim.results.storage.place import LocalPlace, place_of
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.spark.java import find_java_home
from gossamer.spark.shipping.packing import ENVIRONMENT_FILE, ZIP_FILE, make_package, package_files
from support.object_store import BUCKET, ObjectStore, object_store
from support.spark_processes import (
    Cluster,
    apart_from,
    environment,
    run_spark_command,
    sentences,
    standalone_cluster,
)

pytestmark = pytest.mark.slow
SIZE = ("--subscriptions", "3000", "--events", "2000", "--partitions", "3")
SCENARIO = "nodes = 24\nrounds = 12\n[events]\nper_round = 2\nwarm_up_rounds = 6\n"
ENVIRONMENT = "environment"
MAIN = (
    "import sys; from gossamer.command.main import main; sys.exit(main(['spark', *sys.argv[1:]]))"
)


@attrs.frozen
class Apart:
    """A cluster of two workers, an object store, and what was packed for executors."""

    cluster: Cluster
    store: ObjectStore
    packed: Path
    scratch: Path

    def place(self, name: str) -> RemotePlace:
        """A folder of the store."""
        found = place_of(f"s3a://{BUCKET}/{name}", self.store.options())
        assert isinstance(found, RemotePlace)
        return found

    def options(self, *, environment: bool = True) -> list[str]:
        """Of every command."""
        found = ["--master", self.cluster.master, *self.store.conf()]
        if environment:
            found += ["--archives", f"{self.packed / ENVIRONMENT_FILE}#{ENVIRONMENT}"]
            found += [f"--conf=spark.pyspark.python=./{ENVIRONMENT}/bin/python"]
        return found

    def run(self, *arguments: str, environment: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command on the cluster."""
        return run_spark_command(*arguments, *self.options(environment=environment))

    def python_without_gossamer(self, *first: Path) -> str:
        """A Python for executors that has what tasks depend on, and else these folders."""
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
    pytest.importorskip("pyspark", reason="needs Spark: pip install 'gossamer[spark]'")
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


def test_a_packed_environment_makes_a_workload_and_crunches_it(apart: Apart) -> None:
    out = apart.place("w")
    done = apart.run("workload", "vinifera", "--out", str(out), *SIZE)
    assert (done.returncode, sentences(done.stderr)) == (0, [])
    assert json.loads((out / "workload.json").read_bytes())["tables"]["events"]["rows"] == 2000
    assert len((out / "subscriptions").tables()) == 3
    crunched = apart.run("crunch", str(out), "--out", str(apart.place("c")), "--no-plots")
    assert (crunched.returncode, sentences(crunched.stderr)) == (0, [])
    assert (apart.place("c") / "measures.csv").exists()


def test_a_packed_environment_runs_a_sweep(apart: Apart, tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(SCENARIO)
    (tmp_path / "sweep.toml").write_text('scenario = "base.toml"\nseeds = [1, 2]\n')
    file, out = str(tmp_path / "sweep.toml"), apart.place("s")
    done = apart.run("sweep", file, "--out", str(out))
    assert (done.returncode, sentences(done.stderr)) == (0, [])
    here = run_spark_command("sweep", file, "--out", str(tmp_path / "s"), "--memory", "1g")
    assert (here.returncode, sentences(here.stderr)) == (0, [])
    assert (out / "points.csv").read_bytes() == (tmp_path / "s" / "points.csv").read_bytes()


def test_the_package_alone_is_enough_where_the_rest_is_there(apart: Apart) -> None:
    out = apart.place("z")
    done = apart.run(
        *("workload", "siena", "--out", str(out), *SIZE),
        *("--py-files", str(apart.packed / ZIP_FILE), apart.python_without_gossamer()),
        environment=False,
    )
    assert (done.returncode, sentences(done.stderr)) == (0, [])
    assert (out / "workload.json").exists()


def test_executors_without_the_package_are_refused(apart: Apart) -> None:
    out = apart.place("n")
    done = apart.run(
        *("workload", "vinifera", "--out", str(out), *SIZE, apart.python_without_gossamer()),
        environment=False,
    )
    assert done.returncode == 2
    (sentence,) = sentences(done.stderr)
    assert "where executors have no gossamer (on " in sentence
    assert "; 'gossamer spark package' makes what executors need" in sentence
    assert out.files() == []


def test_executors_with_another_version_are_refused(apart: Apart) -> None:
    other = apart.scratch / "other"
    for file in package_files():
        path = other / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
    with (other / "gossamer" / "sim" / "errors.py").open("a") as stream:
        stream.write("# Another one.\n")
    out = apart.place("o")
    done = apart.run(
        *("workload", "vinifera", "--out", str(out), *SIZE, apart.python_without_gossamer(other)),
        environment=False,
    )
    assert done.returncode == 2
    (sentence,) = sentences(done.stderr)
    assert "where executors have code of gossamer " in sentence
    assert out.files() == []


def test_files_that_are_not_there_are_refused(apart: Apart) -> None:
    for option in ("--py-files", "--archives"):
        done = run_spark_command("workload", "siena", "--out", "w", option, "absent.zip#x")
        assert done.returncode == 2
        assert sentences(done.stderr) == [f"gossamer: {option} is 'absent.zip#x', expected a file"]
    assert apart.packed.is_dir()


def test_spark_submit_sends_the_environment(apart: Apart, tmp_path: Path) -> None:
    import pyspark

    program = tmp_path / "driver.py"
    program.write_text(MAIN)
    home = Path(pyspark.__file__).parent
    out = apart.place("submitted")
    command = [str(home / "bin" / "spark-submit"), "--master", apart.cluster.master]
    command += ["--driver-memory", "1g", "--conf", f"spark.pyspark.driver.python={sys.executable}"]
    command += ["--conf", f"spark.pyspark.python=./{ENVIRONMENT}/bin/python"]
    command += ["--archives", f"{apart.packed / ENVIRONMENT_FILE}#{ENVIRONMENT}", str(program)]
    command += ["workload", "covering", "--out", str(out), *SIZE, *apart.store.conf()]
    java = {"JAVA_HOME": str(find_java_home(tmp_path)), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        command,
        env=environment(SPARK_HOME=str(home), **java),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert (out / "workload.json").exists()
