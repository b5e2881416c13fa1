"""What studies of peers and of protocols of one's own have in common: the world that nodes run in.

`network` is the table [network] of a scenario, `links` makes the engines' links of it, `attributes`
draws or reads what nodes are. Studies import from here; this imports no study.
"""
