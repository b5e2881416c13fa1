"""The figures of the papers on filter aggregation and covering, P1 to P9 and I1 to I6.

`burst_runs` has bursts of unsubscriptions, `scenes` clients that move or work; `claims` and
`scene_claims` say what holds, `readings` how the papers can be read, `plots` draws. Only
`gossamer.sim.figures` imports from here. Begin with `figures`.
"""
