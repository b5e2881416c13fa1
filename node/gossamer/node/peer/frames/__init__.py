"""From records of the protocol to frames between peers and back, with who is who.

`core` is one peer of the protocol without clock or network, `address_book` its handles, `wire` the
translation, `descriptor_authentication` the signatures. Begin at `core` and `wire`.
"""
