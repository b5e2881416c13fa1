"""Clients that move and workflows that are carried out: what is run, found and claimed.

Only `gossamer.sim.figures.covering` imports from here. Begin with `scenes`.
"""
