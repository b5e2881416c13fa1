"""Workloads as tables whose rows are functions of (settings, seed, row number) and nothing else.

A table can therefore be made in any order, in any number of parts and on any number of machines,
always with the same rows. They are the rows that the simulator draws for the same seed: both call
the same functions.

`table` is what such a table is, `kinds` finds the workloads by name: `vinifera`, `subscriptions`,
`quotes`, `keywords`. `gossamer.spark` imports from here; nothing in the simulator does. Begin with
`table`.
"""
