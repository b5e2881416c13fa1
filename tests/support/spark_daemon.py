"""What Python workers of the tests' session are forked from: it knows what their tasks import."""

import gc

import pandas  # noqa: F401
from pyspark.daemon import manager

import gossamer.sim.studies.peers.measuring.summary
import gossamer.sim.studies.peers.study
import gossamer.spark.crunch.crunching
import gossamer.spark.stream.following
import gossamer.spark.sweep.task
import gossamer.spark.workload.writing  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # else each worker copies all of it when it collects
    manager()
