"""Finding peers: configured addresses, multicast DNS, and this machine's network interfaces.

Begin at `sources`; `multicast` is one of them.
"""
