"""Sweeps whose points are Spark tasks; see `gossamer.sim.commands.sweep`.

inputs     reads sweep files from any storage
task       runs a point on a worker, and carries its results back
running    hands points out, tries lost ones again
lineage    what made a sweep
remote     keeps results in an object store
runner     runs the tasks of figures on Spark
"""
