"""What the figures of all papers share: claims, parts, points and their measurements.

All of `gossamer.sim.figures` imports from here, and `gossamer.spark`. Begin with `claims`.
"""
