"""The command line's frame: one command, whose subcommands the hosts bring along.

- `main`: finds a host's subcommand, runs it, turns errors into sentences; `signals` ends it in
  order; `extras` says what a part of gossamer lacks
- `options`, `paths`: what commands take; `completion`: what shells complete
- `screens`, `tables`, `waiting`: what is printed: help, tables, and what takes long

Begin at `main`.
"""
