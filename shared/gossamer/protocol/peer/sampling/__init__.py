"""Peer sampling: who else there is, drawn evenly from the whole overlay.

`descriptors` holds partial views as arrays, `newscast` and `cyclon` exchange them, and `sampler` is
the one interface by which everything else asks for peers. Begin at `sampler`.
"""
