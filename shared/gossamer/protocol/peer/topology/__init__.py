"""Which links a peer keeps: ring, small-world and friend links (Vinifera, Sec. IV-B1).

`tman` exchanges candidates, `candidate_filter`, `link_changes` and `selection` choose among them,
`utility` says how alike two peers are. `membership` and `load_shifting` move peers on the ring and
so import from `rendezvous`. Begin at `tman`.
"""
