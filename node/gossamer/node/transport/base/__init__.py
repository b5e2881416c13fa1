"""What every connection is made from: the interface of a transport, frames, limits, strict CBOR.

`base` is the interface, `schema` and `frames` say what may travel, `doors` bounds strangers,
`limits` holds every bound. Begin at `base`.
"""
