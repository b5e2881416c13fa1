"""Bounds on what waits: by peer and by publisher, in and out, and who exceeds them.

Rounds of gossip do not wait: `inbox` leaves out those that are late. Begin at `overload`.
"""
