"""What applications of peers subscribe by: filters joined by `and`, `or`, `not`, over a schema.

- `language`: the text form, read by `parse_expression`; begin here.
- `expression`: its tree, and the exact answer whether an event matches.

Filters (`content.filters`) give the predicates and the sets of values that these ask for. No host
imports from here but through `language` and `expression`.
"""
