"""What a SCOT broker remembers and says: messages, effects, routing table, congested links.

`state` holds all of it. Begin at `messages` and `state`.
"""
