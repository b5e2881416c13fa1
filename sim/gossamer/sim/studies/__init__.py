"""The studies that come with gossamer, a folder each; `gossamer.sim.built_in_studies` lists them.

- `peers`: Vinifera and its baseline; `custom`: protocols of one's own; `worlds`: what both run in
- `tree_brokers`, `scot`: broker overlays, by `stock_quotes`; `dissemination`: trees
- `side_by_side`: what the last three share, whose systems run in a process each
- `checkpointed_runs`: systems round by round

None of them imports from another. Begin with `peers`.
"""
