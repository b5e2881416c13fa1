"""Why a peer cannot be reached, in plain words.

- `findings`: what a check says, and how all of it is shown.
- `remote`: `diagnose`, the way to another peer checked step by step.
- `local`: `diagnose_here`, what this machine and this peer's own files make impossible.
- `causes`: the words for what the system, TLS and the other side report.
"""
