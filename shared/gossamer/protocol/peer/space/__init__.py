"""The identifier ring, and the order-preserving hash that puts attribute values on it (Sec. IV-A).

`encoding` makes points of events and boxes of subscriptions, `covering` a few boxes of an
expression. Begin at `ring` and `hashing`.
"""
