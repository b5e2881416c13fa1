"""What the subcommands of the node do; `gossamer.node.cli` reads their arguments.

`folder` finds a peer's folder, `signals` ends commands in order. `running` starts nodes, `clients`
is for those who publish and subscribe, `cluster` for those who run a cluster, `backup` for a peer's
folder as one file.
"""
