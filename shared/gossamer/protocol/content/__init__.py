"""What is published and what is asked for: schema, subscriptions, filters, their text.

Nothing here loads the compiler. Import from the modules:

- `schema`: attributes with their domains (Vinifera, Sec. IV-A), and versions of one that changes;
  `attributes`: their types
- `subscription`: conjunctions of equalities and ranges, matched exactly, and their text
- `filters`: what brokers match by, with more operators and without a schema; relations, PADRES'
  text, composite subscriptions, and the expressions over a schema that applications of peers
  subscribe by. `matching`: an index over many filters, compiled if asked for
- `grammar`: what all text forms share
- `values`: the kinds of values, their exact order and JSON, and payloads, by which nothing is
  matched; `encodings`: the text that a file's bytes are
- `limits`: what events and requests may measure
"""
