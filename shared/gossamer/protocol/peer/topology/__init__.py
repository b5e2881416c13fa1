"""Which links a peer keeps: ring, small-world and friend links (Vinifera, Sec. IV-B1), and fingers.

`tman` exchanges candidates, `candidate_filter`, `link_changes` and `selection` choose among them,
`utility` says how alike two peers are. `fingers` and `guests` are long links, `ring_repair` mends
the ring at once. `membership` and `load_shifting` move peers on the ring and so import from
`rendezvous`. Begin at `tman`.
"""
