"""What one peer asks of another by its key, past the overlay: a question, and its answer.

- `messages`: questions and answers, over the connections that there are or a new one; requests as
  payloads; announcements, which are for peers and not for applications
- `order`: what a peer published, for those who want its events in order
- `last_values`: the newest event of each value, kept and spread
- `cluster_time`: the time that events carry
"""
