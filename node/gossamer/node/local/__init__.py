"""The socket by which applications on the same machine use a peer, and the library for it.

- `peer_like`: what is needed of a peer
- `frames`: what travels, and values to and from it
- `address`: where the socket is, and who may open it
- `replies`: requests, and replies to them
- `groups`: queue groups, of which one worker gets each event
- `history`: events kept for clients that are away
- `services`, `requests`, `durable`: what the node's side is made of; `serving`: that side
- `client`: the application's side, with the protocol layer; `gossamer.client` is without

Frames are those of `gossamer.node.transport.frames`. A connection begins with `attach`; what
follows it is in docs/local-protocol.md, and what is promised to a client with a name in
docs/promises.md.
"""
