"""Explorations: every order in which messages, timers and faults can come in a small overlay.

The rules that are explored are those that run at a million nodes (`gossamer.sim.custom`). Begin
with `exploration`, which scripts call. `model` lays a protocol out and says what is abstract;
`properties` are what must hold. A state is words (`packed`) of which `symmetry` knows the least
naming; the compiled `loops` make states of states, and the `search` drives them, with `levels` of
what was found. A `story` is the way to a violation, drawn by `diagram`.
"""
