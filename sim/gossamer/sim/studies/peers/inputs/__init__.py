"""What a run of peers is given: the scenario, its file, subscriptions and publications.

All of `gossamer.sim.studies.peers` imports from here. Begin with `scenario`.
"""
