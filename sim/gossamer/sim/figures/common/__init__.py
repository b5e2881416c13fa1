"""What the figures of all papers share: `claims`, `points`, and the `measurements` of these.

All of `gossamer.sim.figures` imports from here, and `gossamer.spark`. Begin with `claims`.
"""
