"""The simulator: scenarios in, result folders out.

engine      runs protocols; knows no study
study       what a study is, how it is found, and what all of them use
studies     peers, tree_brokers, scot, dissemination
results     result folders: written, read, compared, printed, drawn
churn       who is online when
row_tables  workloads as tables
figures     the figures of the papers, and which of their claims hold
bench       benchmarks of speed and memory
commands    the command line

Begin with `study.contract`, then a folder of `studies`. Errors are in `errors`.
"""
