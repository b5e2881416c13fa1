"""Results of one or thousands of runs, and workloads, made into measures and comparisons.

- `folders`: finds runs, checks their tables first, and names the smaller ones
- `deliveries`: path lengths and delays of all deliveries, by Spark
- `workloads`: popularity, sizes, matches and load of workloads
- `matches`: subscriptions that an event matches, exactly or of a sample
- `quantiles`: mean and percentiles of a column, exactly and by executors
- `kept_runs`: what is kept of runs, so that others can be added
- `delta_tables`: crunched runs in Delta tables, which others add to at the same time
- `claims`: claims of the Vinifera paper checked, with intervals
- `curves`: distributions and series, written as they are found
- `crunching`: puts these together; `plots` and `page` show them. Begin there.
"""
