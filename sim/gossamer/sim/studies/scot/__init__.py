"""Structured cyclic overlays under a simulated clock: finite links, output queues, bursts.

`replay` and the modules named after it are the network that a burst runs on. Figures import from
here. Begin with `burst`; `scenario` is a run as TOML.
"""
