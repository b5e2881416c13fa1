"""What the subcommands of `gossamer sim` do, and what scripts run by.

- `cli` reads arguments (`options`); everything else is imported when a command runs
- `run`, `sweep`, `looking`, `reproduction`, `exploring`: what commands do; `progress`: what they
  show meanwhile
- `scripts`: `simulate` and its like, which `gossamer.sim` offers; `finished_run`: what they return;
  `printed`: how notebooks show it

Only other command lines import from here (`gossamer.replay`, `gossamer.spark`). Begin with `run`.
"""
