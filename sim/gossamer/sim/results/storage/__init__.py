"""Storage by path or URL: where inputs and results of large runs may lie.

- `place`: a folder or file, of this machine or of an object store
- `remote`: places of object stores and Hadoop, by the file systems of PyArrow, with credentials and
  endpoints from the options of Spark
- `workloads`: folders of workloads, which the pipeline makes and simulations take

Imports errors, paths and the folder of caches only; `gossamer.spark.storage` writes new folders.
"""
