"""Workloads written as Parquet by any number of tasks, always with the same rows, and checked."""
