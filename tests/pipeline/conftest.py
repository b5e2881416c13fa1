"""A Spark session for all tests of the pipeline; without Spark they are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.spark.session import SessionSettings, spark_session
from support.java_archive import short_lived

# Where workers find `support`, which the tests that they get functions from import.
TESTS = str(Path(__file__).parent.parent)


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    """A small session of this machine."""
    pytest.importorskip("pyspark", reason="needs Spark: pip install 'gossamer[spark]'")
    settings = SessionSettings(
        master="local[2,2]",
        memory_bytes=2**30,
        options={
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.extraJavaOptions": short_lived(),
            "spark.executorEnv.PYTHONPATH": TESTS,
        },
    )
    with spark_session(settings) as made:
        yield made
