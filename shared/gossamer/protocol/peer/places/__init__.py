"""Where on the ring a peer stands.

`placement` says where a peer belongs by what it wants, and keeps those off the ring who want
nothing; `moving` takes it there when that changes, `moved_neighbours` says so to others. They
import from `topology` and `rendezvous`, which know nothing of them. Begin at `placement`.
"""
