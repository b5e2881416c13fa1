"""What helps with rules that are wrong: errors that name them, and runs that check them.

- `compile_errors`: why a rule cannot be compiled, in one sentence
- `checked_arrays`, `checked_structs`, `checked_outbox`: what rules take in a checked run
- `checked_run`: the rules themselves there, and the switch `GOSSAMER_DEBUG`
"""
