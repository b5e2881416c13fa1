"""The memory of peers: struct of arrays, a row each (`state`), and the link table (`links`).

Begin at `state.make_state`.
"""
