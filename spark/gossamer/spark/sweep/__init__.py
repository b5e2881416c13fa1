"""Sweeps: one scenario over a grid or a list of values and explicit seeds, one run a Spark task.

plan       reads a sweep file; every point is a whole scenario, checked before anything runs
task       runs a point, the same way as `gossamer sim run`, and carries its results back
running    hands points out, keeps results as they come, resumes
"""
