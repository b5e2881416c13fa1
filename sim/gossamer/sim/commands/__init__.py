"""What the subcommands of `gossamer sim` do.

`cli` reads arguments; everything else is imported when a command runs. Only other command lines
import from here (`gossamer.replay`, `gossamer.spark`). Begin with `run`.
"""
