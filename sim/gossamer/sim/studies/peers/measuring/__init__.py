"""What a run of peers leaves, and what is read off it: tables, measures, plots.

Figures and `gossamer.replay` import from here. Begin with `records`, then `summary`.
"""
