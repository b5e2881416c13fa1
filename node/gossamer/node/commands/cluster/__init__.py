"""What those who run a cluster do: init, join, revoke, renew, check, watch, trace, stop.

Begin at `membership`.
"""
