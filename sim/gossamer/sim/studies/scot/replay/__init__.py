"""Bursts on a SCOT replayed message by message, its brokers asked once for each message.

`gossamer.sim.studies.scot` imports from here. Begin with `network`; `replay` is the same in
compiled loops, `broadcast` the dynamic sizes of a broadcast.
"""
