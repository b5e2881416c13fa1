"""Results of one or thousands of runs, and workloads, made into measures and comparisons.

folders       finds runs, and refuses tables that cannot be read before anything is computed
tables        what is expected of the tables of each kind of run; what the smaller ones tell
deliveries    path lengths and delays of all deliveries, by Spark
workloads     popularity, sizes, matches and load of workloads
matches       subscriptions that an event matches, exactly or of a sample
quantiles     mean and percentiles of a column, exactly and by executors
conditions    what differs between runs, as typed columns
kept          what is kept of runs, so that others can be added
claims        claims of the Vinifera paper checked, with intervals
curves        distributions and series, written as they are found
writing       tables as Parquet and CSV
crunching     puts these together; plots and page show them
"""
