"""Peer sampling: who else there is, drawn evenly from the whole overlay.

`descriptors` holds partial views as arrays, and what a sampler declares of itself. Each sampler is
a module that exchanges them; `sampler` is the one door by which everything else asks for
peers. Begin there; docs/samplers.md compares the samplers.
"""
