"""Which links a peer keeps: ring, small-world and friend links (Vinifera, Sec. IV-B1), and fingers.

`tman` exchanges candidates, `candidate_filter`, `link_changes` and `selection` choose among them,
`utility` says how alike two peers are. `fingers` and `guests` are long links. `membership` lets
peers join and mends the ring, `load_shifting` moves peers on it; so they import from `rendezvous`.
Begin at `tman`.
"""
