"""Subscriptions and events at rendezvous nodes (Vinifera, Sec. IV-B).

`routing` finds who answers for a value, `installation` takes subscriptions there with the boxes
that `box_aggregation` makes, `event_routing` brings events there, `delivery` back along them.
Beyond the paper:
`replay` and `event_log` for those who come late or were away, `arc_return` and `handover` for arcs
that change their owner, `publication` for acknowledgements. Begin at `routing`.
"""
