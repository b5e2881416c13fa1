"""New folders on any storage, and tables on it as frames of Spark.

claims      one process at a time for a folder of a store that has no locks
folders     new folders, whole or not at all: by a rename, or by a marker where there is none
replacing   folders that grow: the old one gives way to a whole new one
partitions  tables as Hive keeps them
frames      tables as frames of Spark, by its connectors or by PyArrow in its workers

Built on `gossamer.sim.results.storage`, which reads and writes files by path or URL.
"""
