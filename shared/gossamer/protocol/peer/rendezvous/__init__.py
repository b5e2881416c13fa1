"""Subscriptions and events at rendezvous nodes (Vinifera, Sec. IV-B).

`installation` takes subscriptions to who answers for their values, with boxes that
`installation_boxes` showers over a range, `event_routing` brings events there, `delivery` back
along delivery trees. Beyond the paper: `replay` and `event_log` for those who come late or were
away, `arc_return` for arcs that change their owner, `ring_offers` for neighbours, which want the
same, `publication` for acknowledgements, `questions` whether neighbours live. Begin at
`installation`.
"""
