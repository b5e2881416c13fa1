"""Frames between two peers: bytes in, checked frames out, and everything bounded.

Read in this order; each needs only those before it:

- `base`: what a transport is; `limits`: every bound and time with its reason, and room for those
  who have not shown yet who they are
- `schema`, `frames`: what frames may hold, and frames to and from bytes
- `byte_streams`: non-blocking byte streams, TLS, graceful close, several addresses dialled at once
- `send_queue`, `writer`: frames that wait to be written, and what writes them
- `handshake`: the hello that both ends exchange before anything else
- `connection`: one admitted peer over one byte stream
- `tcp`: connections over TCP with TLS
- `links`: at most one connection to each peer, dialled when there is need

The caller brings TLS contexts, and decides through a callable who may come in.
"""
