"""Brokers on a general graph, made up or read from a file.

All of `gossamer.sim.studies.dissemination` imports from here. Begin with `topology`.
"""
