"""Why a peer cannot be reached, in plain words.

- `remote`: `diagnose`, the way to another peer checked step by step
- `local`: `diagnose_here`, what this machine and this peer's own files make impossible
- `failures`: what a check says, and the words for what the system, TLS and the other side report
"""
