"""Bounds on what waits: by peer and by publisher, in and out, and who exceeds them.

`inbox` is what comes, and timers: rounds of gossip that are late are left out; `sender` is what
goes. Begin at `overload`.
"""
