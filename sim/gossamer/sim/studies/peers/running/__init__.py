"""A system of peers in the course of a run.

`gossamer.sim.studies.peers.study` and `gossamer.replay` import from here. Begin with
`peers_run`, the rounds of any system, and `system_run`, those of a shipped one; `overlay_run` is of
an overlay of one's own. `preparation` reads files first, `driver` is an engine with its clock,
`population` who is online, `collector` counts what events cost, and bytes.
"""
