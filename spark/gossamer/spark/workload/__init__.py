"""Workloads written as Parquet by any number of tasks, always with the same rows, and checked.

`writing` is `gossamer spark workload`, `checks` reads back what it wrote.
"""
