"""Sweeps whose points are Spark tasks; see `gossamer.sim.commands.sweep`.

`task` runs a point on a worker and carries its results back, `running` hands points out, those of
figures too, and tries lost ones again. Begin with `running`.
"""
