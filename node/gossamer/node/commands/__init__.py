"""What the subcommands `gossamer node`, `sub`, `pub` and `top` do; `gossamer.node.cli` calls it."""
