"""Structured cyclic overlays under a simulated clock: finite links, output queues, bursts.

`workloads` has overlays and what is published. `replay` and the modules named after it are the
network that a burst runs on: `replay_network` with queues and links, `replay_loop`
compiled, on the columns of `replay_tables`.
Figures import from here. Begin with `burst`; `scenario` is a run as TOML, for the `study`;
`records` and `plots` are what is left of it.
"""
