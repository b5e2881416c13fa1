"""New folders on any storage, and tables on it as frames of Spark.

- `folders`: new folders, whole or not at all, by a rename, or by a marker where there is none; one
  process at a time; folders that grow, by a whole new one in place of the old
- `frames`: tables as frames of Spark, by its connectors or by PyArrow in its workers
- `delta`: Delta tables, appended by any number of processes
- `lineage`: what made a folder, kept within it

Built on `gossamer.sim.results.storage`, which reads and writes files by path or URL.
"""
