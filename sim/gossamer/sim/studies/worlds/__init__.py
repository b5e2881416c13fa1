"""What studies of peers and of protocols of one's own have in common: the world that nodes run in.

`network` is the table [network] of a scenario, `sessions` the table [sessions], `attributes`
draws or reads what nodes are, `traffic_plots` draws bytes. Studies import from here; this imports
no study. Begin with `network`.
"""
