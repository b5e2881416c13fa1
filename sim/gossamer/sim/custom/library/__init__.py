"""What protocol files call: rules for handlers, functions for measures.

`draws`, `peers` (of samplers) and `rows` (lists of nodes in columns) are rules, `graphs` measures
the graph that nodes form. Protocol files import them from `gossamer.sim.custom`.
"""
