"""What a run of peers leaves, and what is read off it: tables, measures, plots.

Figures and `gossamer.replay` import from here. Begin with `records`; `summary` has the measures,
`overlay_measures` those of the overlay. `plots` and `overlay_plot` draw; `kept_workload` is the
workload as tables.
"""
