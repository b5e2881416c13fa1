"""Content-based brokers, each a state machine: a message in, effects out.

`core` is what all of them share: identifiers, clients' messages and effects, plain data. Beside it
are `tree` (acyclic overlays with covering and pruning), `graph` (general graphs, documents on trees
that a coordinator plans) and `scot` (structured cyclic overlays). A family does not know another.
"""
