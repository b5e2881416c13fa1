"""The figures of the paper on content-aware trees, T1 to T7: `studies` run, `plots` drawn.

Only `gossamer.sim.figures` imports from here. Begin with `figures`.
"""
