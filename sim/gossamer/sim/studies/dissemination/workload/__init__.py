"""Keywords, subscriptions and documents, drawn or read, and how they change.

All of `gossamer.sim.studies.dissemination` imports from here. Begin with `workload`.
"""
