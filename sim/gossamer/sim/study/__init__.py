"""What every study uses, and nothing about any of them.

Anything may import from here; this folder imports no study but by the name under which it is
registered. Begin with `contract` (what a study is) and `scenarios` (how one is found, and
scenario files of every kind, by `scenario_format`). `records` and `plot` are what runs leave,
`draws` the random numbers of workloads, `tasks` runs in several processes, `checkpoints` parts of a
run in files, `watching` who looks at one.
"""
