"""What executors need of this installation: packed, sent, and compared with what they have.

`packing` makes archives of the package, and of an environment with all that it depends on;
`versions` says whether executors have what the driver has, which they find by `looking`. Begin with
`packing`.
"""
