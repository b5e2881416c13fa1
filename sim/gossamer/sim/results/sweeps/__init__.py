"""Sweeps: one scenario over a grid or a list of values and explicit seeds.

- `plan`: reads a sweep file; every point is a whole scenario, checked before anything runs
- `folder`: the folder of a sweep: claimed, resumed, finished with a table of all points
- `scheduling`: hands points out, as many as there is room for, and keeps results as they come
- `worker`: a process that runs points, as `gossamer sim run` does
- `here`: points in processes of this machine; `gossamer.spark.sweep` has them on a cluster
- `outcome`: means over the seeds, paired differences, and how long runs take to settle (MSER-5)
- `table`: sweeps in a script or notebook

Imports `results` and what lies below it. Begin with `plan` and `scheduling`.
"""
