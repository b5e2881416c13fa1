"""Brokers and the links between them under a simulated clock.

The workloads and bursts of `gossamer.sim.studies.tree_brokers` import from here. Begin with
`engine`.
"""
