"""Checked runs: rules that are wrong are named, with the record and the row.

- `checked_arrays`, `checked_structs`, `checked_outbox`: what rules take in a checked run
- `checked_run`: the rules themselves there, and the switch `GOSSAMER_DEBUG`
"""
