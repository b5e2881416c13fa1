"""The memory of peers: struct of arrays, a row each (`state`), and what is read off it.

`links` is the link table, `routing_table` who asked for what, `lookup` where values lead (greedy
lookup and showering, Vinifera, Sec. IV-B2), `event_logs` what peers hold and got, `resting` when a
peer has its turns. Begin at `state.make_state`.
"""
