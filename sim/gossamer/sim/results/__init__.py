"""Result folders: written whole, read back, compared, printed and drawn.

- `results`: the folder, `held` by one process at a time, on any `storage`; `overlay_files`:
  overlays in it
- `sweeps`: many runs; `intervals`: means and comparisons over their seeds, warm-ups by MSER-5
- `tables`, `report`, `page`: what is printed, written and served; `plot_style`, `interval_plots`:
  pictures

Studies and commands may import from here. Begin with `results`; what a kind of run has of its own
(measures, pictures, facts) is asked of its study.
"""
