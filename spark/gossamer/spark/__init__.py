"""The data pipeline on Apache Spark: workloads, sweeps, and results of large runs crunched.

- `session` makes or joins a Spark session with the options of `configuration`; `gateway` finds a
  Java, starts and ends it; `masters` asks whether a master answers first, and waits for workers
- `internals`: all that is used of Spark beyond what it promises; `repeating`: again and again
- `jobs` makes one sentence of what fails (`errors`), `handover` brings results of tasks through
  storage
- `shipping` packs what executors need, sends it, compares versions
- `storage`: new folders on any storage, tables as frames and as Delta tables
- `workload`: tables of `gossamer.sim.row_tables` written as Parquet, and checked
- `crunch`: result folders of one or thousands of runs made into measures, intervals, comparisons
- `stream`: deliveries of live nodes followed, in windows of time
- `sweep`: one simulation a Spark task
- `commands`: the subcommand `gossamer spark`; begin there

Spark is an extra (`spark` in pyproject.toml) and is imported only where it is used. What is
computed is defined in `gossamer.sim`; here it is only spread over machines.
"""

from gossamer.command.extras import check_requirements

check_requirements(__name__)
