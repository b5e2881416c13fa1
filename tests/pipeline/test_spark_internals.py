"""What is used of PySpark and Spark beyond what they promise is there; else it is named here."""

from __future__ import annotations

import ast
import re
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest

from gossamer.spark import internals
from support.checkout import ROOT
from support.spark_processes import needs_spark, spark_home

PRIVATE: Final = ("_jvm", "_gateway", "_jsc", "_accumulatorServer", "_ensure_initialized")
# By what uses them: what an object of PySpark, or a class of Spark's, has to have.
OF_CONTEXT: Final = {
    "has_gateway": "_gateway",
    "begin_gateway": "_ensure_initialized",
    "asker": "_jvm",
    "has_workers, cancel_jobs": "_jsc",
    "quiet_counters": "_accumulatorServer",
}
OF_JAVA: Final = {
    "has_workers": "org.apache.spark.SparkStatusTracker.getExecutorInfos",
    "cancel_jobs": "org.apache.spark.SparkContext.cancelJob",
    "has_connector": "org.apache.hadoop.fs.FileSystem.getFileSystemClass",
    "asker": "org.apache.spark.rpc.RpcEnv.create",
    "is_master": "org.apache.spark.rpc.RpcEnv.setupEndpointRef",
}
# By pattern, words of Spark's, in the jars or the sources that have them.
WORDS: Final = {
    "TOO_LARGE": ["is bigger than ", "spark.driver.maxResultSize"],
    "NOT_THERE": ["FILE_NOT_EXIST"],
    "LOST": ["Python worker exited unexpectedly", "ExecutorLostFailure", "worker lost"],
    "GONE": [
        "SparkContext was shut down",
        "stopped SparkContext",
        "masters are unresponsive",
        "Master removed our application",
        "Answer from Java side is empty",
        "Error while sending",
    ],
    "DAMAGED": ["FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER", "is not a Parquet file"],
    "BRIDGE": ["An error occurred while calling"],
}
HOLDING: Final = ("spark-core_", "spark-common-utils", "spark-sql_", "parquet-hadoop-")


def test_nothing_else_uses_what_is_private() -> None:
    for file in sorted((ROOT / "spark").rglob("*.py")):
        if file.name in ("internals.py", "frames.py"):  # connectors, below internals
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            used = getattr(node, "attr", None)
            assert used not in PRIVATE, f"{file.name} uses {used}, which internals.py is for"
            module = getattr(node, "module", None) or ""
            assert not module.startswith(("py4j", "pyspark.java_gateway")), file.name


def test_names_of_pyspark_and_spark_are_there(session: Any) -> None:
    context, found = session.sparkContext, version("pyspark")
    for user, name in OF_CONTEXT.items():
        gone = f"PySpark {found} has no SparkContext.{name}, which internals.{user} needs"
        assert hasattr(context, name), gone
    from pyspark import java_gateway

    gone = f"PySpark {found} has no launch_gateway, which internals.begin_gateway needs"
    assert hasattr(java_gateway, "launch_gateway"), gone
    for user, name in OF_JAVA.items():
        of, _, method = name.rpartition(".")
        known = context._jvm.java.lang.Class.forName(of).getMethods()
        gone = f"Spark {session.version} has no {name}, which internals.{user} needs"
        assert method in {one.getName() for one in known}, gone


def contents() -> Iterator[bytes]:
    """What is compiled or written in the jars that hold the words, and in the bridge's sources."""
    home = spark_home()
    for jar in (home / "jars").glob("*.jar"):
        if jar.name.startswith(HOLDING):
            with zipfile.ZipFile(jar) as opened:
                yield from (opened.read(name) for name in opened.namelist())
    import py4j

    yield from (one.read_bytes() for one in Path(py4j.__file__).parent.glob("*.py"))


@needs_spark
def test_words_of_spark_are_there() -> None:
    left = {word: name for name, words in WORDS.items() for word in words}
    for word, name in left.items():
        pattern = getattr(internals, name)
        if name not in ("TOO_LARGE", "BRIDGE"):
            assert pattern.search(word), f"{name} does not know {word!r}"
    for content in contents():
        for word in [one for one in left if one.encode() in content]:
            del left[word]
        if not left:
            break
    lines = [f"internals.{name} waits for {word!r}" for word, name in left.items()]
    assert not left, f"Spark {version('pyspark')} says otherwise: {'; '.join(lines)}"


def test_errors_are_reported_by_their_innermost_cause() -> None:
    class Cause:
        def __init__(self, text: str, cause: Cause | None = None) -> None:
            self.text, self.cause = text, cause

        def getCause(self) -> Cause | None:  # noqa: N802, Java's name
            return self.cause

        def getMessage(self) -> str:  # noqa: N802, Java's name
            return self.text

    error = RuntimeError("o7.x")
    assert internals.message_of(error) == "o7.x"
    error.java_exception = Cause("outer", Cause("inner"))  # type: ignore[attr-defined]
    assert internals.message_of(error) == "inner"


@pytest.mark.parametrize("pattern", ["TOO_LARGE", "LOST", "GONE", "DAMAGED", "NOT_THERE"])
def test_other_words_are_not_taken_for_these(pattern: str) -> None:
    assert not re.search(getattr(internals, pattern), "a task failed: nodes is 1, expected 2")
