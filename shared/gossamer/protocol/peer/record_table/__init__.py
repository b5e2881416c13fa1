"""What a declaration of records is made of, and what follows from it.

`fields` are what a record's words are declared as, `table` holds the declarations, `page` writes
the page of the documentation. The declarations themselves are in `peer.records`.
"""
