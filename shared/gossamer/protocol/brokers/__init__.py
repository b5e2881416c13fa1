"""Content-based brokers, each a state machine: a message in, effects out.

`core` is the broker itself, with clients, effects and plain data. What it is plugged with, a
`core.routing.Routing`, lies beside it, family by family: `tree` for acyclic overlays with covering
and pruning, `graph` for general graphs, where documents go on trees that a coordinator plans, and
one for structured cyclic overlays. A family does not know another. `arrivals` is how messages wait
for any of them, in nodes and in simulations.
"""
