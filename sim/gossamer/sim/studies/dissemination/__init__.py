"""Dissemination trees: topologies, workloads, and strategies compared by what they cost.

`topologies` has brokers on general graphs, `workload` keywords and documents, `adaptation` trees
that follow a workload that changes. Figures and workloads as tables import from here. Begin with
`strategies`; `scenario` is a run as TOML.
"""
