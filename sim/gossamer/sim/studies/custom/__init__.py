"""The study of protocols of one's own: scenarios that name a Python file and a class in it.

The protocols themselves, and what runs them, are in `gossamer.sim.custom`. Begin with `study`.
`scenario` is what is to run, `rehearsal` tries it, `simulation` runs it, `records` has what is left
and `plots` draws it.
"""
