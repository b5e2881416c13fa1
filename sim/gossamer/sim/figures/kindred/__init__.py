"""Figures of the preset `kindred` beside the Vinifera paper's: V1 to V10, K1 to K12.

`gossamer.sim.figures` imports from here. Begin with `figures`; `studies` says what is compared and
run, `promises` which claims of the paper hold with `kindred` in Vinifera's place, `bounds` which of
our own do. `plots` and `growth_plot` draw, `published` those of the documentation.
"""
