"""What is published and what is asked for: schema, subscriptions, filters, their text.

Nothing here loads the compiler. Import from the modules:

- `schema`: attributes with their domains (Vinifera, Sec. IV-A).
- `evolution`: versions of a schema that changes; `payload`: what nothing is matched by.
- `expressions`: what applications of peers subscribe by, and its text.
- `subscription`: conjunctions of equalities and ranges, matched exactly; `language`: their text.
- `filters`: what brokers match by, with more operators and without a schema; relations, PADRES'
  text, composite subscriptions. `matching`: an index over many filters, compiled if asked for.
- `values`: the kinds of values and their exact order; `json_values`: the same in JSON;
  `encodings`: the text that a file's bytes are.
- `limits`: what events and requests may measure; `errors`: what is refused and why.
"""
