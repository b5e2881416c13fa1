"""Exact counts, percentiles and matches of more rows than one process has room for.

`tallies` counts values, `quantiles` orders them, `matches` holds events against ranges. Each is a
few functions that tasks run over batches of rows, and what the driver makes of their answers. Rows
come from a frame of Spark, or from `scanning`, where tasks read files themselves. Imports storage
and the handover of files, and no other part of crunching.
"""
