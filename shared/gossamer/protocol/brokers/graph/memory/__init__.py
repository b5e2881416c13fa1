"""What a graph broker remembers and says: messages, effects, tables, the versions of trees.

`state` holds all of it, `topology_map` knows who is linked to whom. Begin at `messages`, `state`.
"""
