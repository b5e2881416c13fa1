"""A peer on real sockets: the protocol's rules driven by frames and timers, for applications.

- `peer` opens one, `application` is what programs use: `subscriptions`, `publications`
- `peer_parts` makes and joins its parts from `dependencies`, `assembly` starts them
- `inbound` is what comes from others, `runtime` what is done about it; `batches` is the way of
  events where a peer is busy, `unicast` what one peer asks of another
- `frames` turns records to frames, `load` bounds what waits, `membership` is who belongs to the
  cluster, `cluster_info` what all know of it
- `bootstrap` gets into the overlay, `persistence` is what lasts over restarts, `views` what is
  shown

Begin at `peer`, then `inbound` and `runtime`.
"""
