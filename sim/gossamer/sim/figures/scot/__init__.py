"""The figures of the paper on structured cyclic overlays, O1 to O7.

Only `gossamer.sim.figures` imports from here. Begin with `figures`, which checks the claims and
draws; `studies` says what is run.
"""
