"""The figures of the papers on filter aggregation and covering.

`bursts` has bursts of unsubscriptions, `scenes` clients that move or work. Only
`gossamer.sim.figures` imports from here. Begin with `figures`.
"""
