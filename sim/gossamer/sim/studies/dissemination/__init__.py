"""Dissemination trees: topologies, workloads, and strategies compared by what they cost.

`topologies` and `topology_files` have brokers on general graphs, `workload` keywords and documents,
`adaptation` trees that follow a workload that changes (`dynamics`, over `adaptation_network`).
Figures and workloads as tables import from here. Begin with `strategies`; `scenario` is a run as
TOML, for the `study`; `records` and `plots` are what is left of it.
"""
