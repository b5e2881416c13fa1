"""A Spark session for all tests of the pipeline; without Spark they are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gossamer.spark.session import SessionSettings, spark_session
from support.spark_processes import SHORT_LIVED


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    """A small session of this machine."""
    pytest.importorskip("pyspark", reason="needs Spark: pip install 'gossamer[spark]'")
    settings = SessionSettings(
        master="local[2,2]",
        memory_bytes=2**30,
        options={
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.extraJavaOptions": SHORT_LIVED,
        },
    )
    with spark_session(settings) as made:
        yield made
