"""What the subcommands of `gossamer sim` do, and what scripts run by.

`cli` reads arguments; everything else is imported when a command runs. `scripts` has `simulate` and
its like, which `gossamer.sim` offers, and `finished_run` what they return. Only other command lines
import from here (`gossamer.replay`, `gossamer.spark`). Begin with `run`.
"""
