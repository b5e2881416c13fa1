"""How a peer becomes a member and stays one: tokens, join requests, admission, late renewal.

`join_protocol` is the exchange without a network, `joining` the server and the client. Begin there.
"""
