"""What all brokers share: identifiers, messages and effects of clients, and their plain data.

Nothing here knows how a broker routes. Begin at `messages` and `effects`.
"""
