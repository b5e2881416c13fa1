"""Content-based brokers, each a state machine: a message in, effects out.

`core` is the broker itself, with clients, effects and plain data. What it is plugged with, a
`core.broker.Routing`, lies beside it, family by family: `tree` for acyclic overlays with covering
and pruning, `scot` for structured cyclic overlays, `graph` for general graphs, where documents go
on trees that a coordinator plans. A family does not know another. Begin at `core`.
"""
