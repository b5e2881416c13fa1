"""The identifier ring, and the order-preserving hash that puts attribute values on it (Sec. IV-A).

`encoding` makes points of events and boxes of subscriptions. Begin at `ring` and `hashing`.
"""
