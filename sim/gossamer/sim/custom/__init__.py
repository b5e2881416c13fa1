"""Protocols of one's own: how they are declared and written, and the drivers that run them.

Scripts and protocol files import from `gossamer.sim`, studies from the modules. Begin with
`protocol` (rules) or `node` (plain classes); `step` makes one rule of a stack of protocols,
`rule_driver` and `plain_driver` run them. `library` has what handlers and measures call.
"""
