"""What a declaration of records is made of, and what follows from it.

`fields` are what a record's words are declared as, in a `Table`; `page` writes the page of the
documentation. `layouts` says which words of a stranger are sane.
`records` declares every record: begin there.
"""
