"""Checked runs: rules that are wrong are named, with the record and the row.

- `checked_arrays`: the arrays that rules take in a checked run
- `checked_run`: structs, outbox and the rules themselves there, and the switch `GOSSAMER_DEBUG`
"""
