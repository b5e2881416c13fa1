"""A peer on real sockets: the protocol's rules driven by frames and timers, for applications.

`peer` opens one, `application` is what programs use. `peer_parts` makes and joins its parts,
`assembly` starts them; `inbound` is what comes from others, `runtime` what is done about it.
`frames` turns records to frames, `load` bounds what waits, `membership` is who belongs to the
cluster. Begin at `peer`, then `inbound` and `runtime`.
"""
