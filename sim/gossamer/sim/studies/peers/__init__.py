"""Peers without servers: Vinifera and its baseline under churn, side by side.

`inputs` says what is run, `running` runs it, `measuring` reads off what came of it. Figures, bench,
`gossamer.replay` and workloads import from here. Begin with `study`.
"""
