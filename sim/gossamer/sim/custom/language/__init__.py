"""The language in which protocols are written: what a class declares, and messages.

Begin with `members` (settings, columns, timers) and `functions` (measures, controls);
`declarations` collects both from a class. `messages` are classes of fields, `record_rules` the
rules made of them, `context` is what a handler is given beside its node. `code` says what rules
refer to, `places` finds the line in a user's file that an error is about. Imports the engine and
the protocol's kernel, no driver and no study.
"""
