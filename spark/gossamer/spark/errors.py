"""The pipeline's errors, each one sentence."""

from __future__ import annotations

from gossamer.sim.errors import SimulationError, SweepStopped

EXTRA = "spark"
CONNECT = "pip install 'pyspark[connect]'"

# The reason that `workers` gives for cancelling a job, by which `jobs` knows it again.
NO_WORKERS = "the cluster has had no worker"


class ClusterError(SimulationError):
    """A Spark session cannot be had as asked; nothing was begun.

    Attributes:
        master: the address that was asked for.
        reason: what is wrong with it, in words.
    """

    def __init__(self, master: str, reason: str) -> None:
        self.master = master
        self.reason = reason
        super().__init__(f"--master is {master!r}, {reason}")


class JobError(SimulationError):
    """A Spark job failed; what it was to write is not there."""


class ClusterLost(JobError, SweepStopped):
    """Nothing that is tried again on a cluster can help: it has no workers, or is gone itself.

    Or its machines do not share a folder with the driver; they have written nothing then.
    """


class WorkerLost(JobError):
    """The process or machine that ran a task is gone; the task may be tried again."""
