"""Bursts of unsubscriptions under every covering: what is run, found and claimed.

Only `gossamer.sim.figures.covering` imports from here. Begin with `bursts`.
"""
