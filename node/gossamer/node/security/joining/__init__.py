"""How a peer becomes a member and stays one: tokens, join requests, admission, late renewal.

`join_protocol` is the exchange without a network, `server` and `client` are its two ends,
`admission` what only the holder of the authority's key does, `commands` what commands call.
"""
