"""Peer sampling: who else there is, drawn evenly from the whole overlay.

`descriptors` holds partial views as arrays. Each sampler is a module that exchanges them and
declares itself as `interface` says; `sampler` is the one door by which everything else asks for
peers. Begin there; docs/samplers.md compares the samplers.
"""
