"""A system of peers in the course of a run.

`gossamer.sim.studies.peers.study` and `gossamer.replay` import from here. Begin with
`system_run`; `preparation` reads files first, `driver` is an engine with its clock, `population`
who is online, `collector` counts what events cost, and bytes.
"""
