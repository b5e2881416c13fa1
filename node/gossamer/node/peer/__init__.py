"""A peer on real sockets: the protocol's rules driven by frames and timers, for applications.

`peer` opens one, `application` is what programs use, `assembly` puts it together from its parts,
`runtime` drives it. `frames` turns records to frames, `load` bounds what waits, `membership` is who
belongs to the cluster. Begin at `peer`, then `runtime`.
"""
