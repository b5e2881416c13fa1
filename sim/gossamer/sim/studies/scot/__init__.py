"""Structured cyclic overlays under a simulated clock: finite links, output queues, bursts.

`replay` is the network that a burst runs on. Figures import from here. Begin with `burst`;
`scenario` is a run as TOML.
"""
