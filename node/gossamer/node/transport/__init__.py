"""Frames between two peers: bytes in, checked frames out, and everything bounded.

Read in this order; each module needs only those before it:

- `limits`: every bound and time, with its reason
- `schema`, `frames`: what a frame may hold, and frames to and from bytes
- `base`, `linger`: what a transport is, the words shared by all of them, and how one closes
- `handshake`: the hello that both ends exchange before anything else
- `throttle`, `fair_queue`, `send_queue`, `connection`: one admitted peer over one byte stream
- `doors`: room for those who have not shown yet who they are
- `tls`, `race`, `tcp`: connections over TCP with TLS, dialled at several addresses at once
- `back_off`, `links`: at most one connection to each peer, dialled when there is need

The caller brings TLS contexts, and decides through a callable who may come in.
"""
