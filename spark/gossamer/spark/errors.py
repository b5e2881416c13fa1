"""The pipeline's errors, each one sentence."""

from __future__ import annotations

from gossamer.sim.errors import SimulationError, SweepStopped

EXTRA = "spark"
CONNECT = "pip install 'pyspark[connect]'"

# The reason that `workers` gives for cancelling a job, by which `jobs` knows it again.
NO_WORKERS = "the cluster has had no worker"


class JobError(SimulationError):
    """A Spark job failed; what it was to write is not there."""


class ClusterLost(JobError, SweepStopped):
    """Nothing that is tried again on a cluster can help: it has no workers, or is gone itself.

    Or its machines do not share a folder with the driver; they have written nothing then.
    """


class WorkerLost(JobError):
    """The process or machine that ran a task is gone; the task may be tried again."""


def no_session(master: str, reason: str) -> SimulationError:
    """The error of a master at which there is no session as asked; nothing was begun."""
    return SimulationError(f"--master is {master!r}, {reason}")
