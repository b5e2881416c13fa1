"""The figures of the paper on Vinifera, V1 to V10.

`gossamer.sim.figures` and `gossamer.spark` import from here. Begin with `figures`; `studies` says
what is run, `claims` which claims hold.
"""
