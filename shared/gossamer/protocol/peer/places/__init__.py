"""Where on the ring a peer stands.

`placement` says where a peer belongs by what it wants, `moving` takes it there when that changes,
`clients` keeps those who want nothing off the ring. They import from `topology` and `rendezvous`,
which know nothing of them. Begin at `placement`.
"""
