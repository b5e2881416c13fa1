"""Peer sampling: who else there is, drawn evenly from the whole overlay.

`descriptors` holds partial views as arrays, and what a sampler declares of itself. Each sampler is
a module that exchanges them: `cyclon`, `newscast`, `hyparview` with its `hyparview_views`.
`sampler` is the one door by which everything else asks for peers: begin there. `page` writes their
messages into docs/samplers.md, which compares them.
"""
