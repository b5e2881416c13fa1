"""Bounds on what waits: by peer and by publisher, in and out, and who exceeds them.

Begin at `overload`.
"""
