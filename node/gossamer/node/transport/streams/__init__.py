"""Byte streams: non-blocking writes, TLS driven by hand, graceful close, racing dials.

Begin at `non_blocking`.
"""
