"""One Spark session, with one Java, and one object store for all tests that can share them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from gossamer.spark.session import SessionSettings, spark_session
from support import node_processes, spark_processes
from support.object_store import ObjectStore, object_store

HERE: Final = Path(__file__).parent
CONNECT_PORT: Final = "spark.connect.grpc.binding.port"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one process run all that share the session."""
    for item in items:
        shared = {"session", "store"} & {*getattr(item, "fixturenames", ())}
        if shared and item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group("session"))


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A small session of this machine.

    The Python of its tasks is a script, which leaves a file `used` beside it.
    """
    pytest.importorskip("pyspark", reason="needs Spark: pip install '.[spark]'")
    python = tmp_path_factory.mktemp("python") / "python"
    python.write_text(f'#!/bin/sh\ntouch "{python.parent}/used"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    settings = SessionSettings(
        master="local[2,2]",
        memory_bytes=2**30,
        options={
            "spark.sql.shuffle.partitions": "2",
            "spark.pyspark.python": str(python),
            "spark.python.daemon.module": "support.spark_daemon",
            # Else some jobs have a daemon of their own.
            "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
            "spark.driver.extraJavaOptions": spark_processes.BRIEF,
            "spark.connect.grpc.binding.address": "127.0.0.1",
            CONNECT_PORT: str(node_processes.free_ports(1)),
        },
    )
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            # Where workers find `support`, which the tests that they get functions from import.
            patch.setenv("PYTHONPATH", str(HERE.parent))
            made = stack.enter_context(spark_session(settings))
        made.range(4).mapInArrow(lambda batches: batches, "id long").count()  # loads what is needed
        yield made


@pytest.fixture(scope="session")
def server(session: Any) -> str:
    """The address of a server of Spark Connect in the session's Java."""
    pytest.importorskip("grpc", reason="needs Spark Connect: pip install 'pyspark[connect]'")
    service = session._jvm.org.apache.spark.sql.connect.service.SparkConnectService
    service.start(session.sparkContext._jsc.sc())
    return f"sc://127.0.0.1:{session.conf.get(CONNECT_PORT)}"


@pytest.fixture(scope="session")
def store() -> Iterator[ObjectStore]:
    """A server of S3, in which each test has a folder of its own."""
    with object_store() as running:
        yield running
