"""What becomes of the failures of jobs."""

from __future__ import annotations

import pytest

from gossamer.spark.errors import WorkerLost
from gossamer.spark.jobs import job_errors

LOST = ConnectionResetError("the other end is gone")  # as Spark raises where Java does not answer


def test_an_interrupted_job_is_not_called_a_lost_worker() -> None:
    """Spark speaks to Java when it clears up after an interrupt, and fails in that."""
    interrupt = KeyboardInterrupt()

    def work() -> None:
        with job_errors("a job"):
            try:
                raise interrupt
            finally:
                raise LOST

    with pytest.raises(KeyboardInterrupt) as raised:
        work()
    assert raised.value is interrupt


def test_a_job_that_nobody_interrupted_has_lost_its_worker() -> None:
    with pytest.raises(WorkerLost, match=r"^a job: a worker was lost"), job_errors("a job"):
        raise LOST
