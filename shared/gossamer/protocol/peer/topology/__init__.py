"""Which links a peer keeps: ring, small-world and friend links (Vinifera, Sec. IV-B1), and fingers.

`tman` exchanges candidates and says whether new ones are worth a change, `selection` chooses among
them, `utility` says how alike two peers are and whom it may be worth to link to. Others come from
`sampling_records`, and `consistency` finds who has not heard of a change. `fingers` and `guests`
are long links. `membership` lets peers join and mends the ring. `placement` says where on
the ring a peer belongs, `moving` and `load_shifting` change that, and so import from `rendezvous`.
Begin at `tman`.
"""
