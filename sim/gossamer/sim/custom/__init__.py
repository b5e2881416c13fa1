"""Protocols of one's own: how they are declared and written, and the drivers that run them.

Scripts and protocol files import from `gossamer.sim`, studies from the modules. Begin with
`protocol` (rules) or `node` (plain classes), declared in the `language`; `loading` finds a class in
its file. `step` makes one rule of a stack of protocols, `rule_driver` and `plain_driver` run them
in a `simulation` under `conditions`, the latter by `plain_engine`, `plain_entries` and
`plain_stack`. `library` has what handlers and measures call, `topologies` has T-Man, `pubsub` what
overlays derive from that are compared with the shipped ones; `tally` counts messages and keeps the
log of what nodes write down, `faults` names the line of what failed.
"""
