"""What the subcommands of `gossamer sim` do; `gossamer.sim.cli` only reads their arguments."""
