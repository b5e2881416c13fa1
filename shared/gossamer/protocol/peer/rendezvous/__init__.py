"""Subscriptions and events at rendezvous nodes (Vinifera, Sec. IV-B).

`routing` finds who answers for a value, `installation` takes subscriptions there with the boxes
that `installation_boxes` makes, `event_routing` brings events there, `delivery` back along them.
Beyond the paper: `replay` and `event_log` for those who come late or were away, `arc_return` for
arcs that change their owner, `ring_offers` for neighbours, which want the same, `publication` for
acknowledgements. Begin at `installation`.
"""
