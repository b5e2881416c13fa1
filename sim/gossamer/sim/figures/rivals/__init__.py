"""`kindred` beside overlays of others: `gossamer sim figures rivals`.

The rivals are protocols of `examples/rivals/`. `studies` has the workloads and what is run,
`figures` the report and what is held of them, `plots` what is drawn. Begin with `figures`.
"""
