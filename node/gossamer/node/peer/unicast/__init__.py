"""What one peer asks of another by its key, past the overlay: a question, and its answer.

- `announcements`: events that are for peers, and not for applications
- `order`: what a peer published, for those who want its events in order
- `messages`: questions and answers between peers, over the connections that there are or a new one
- `envelopes`: what an event's payload says beside what an application put into it
"""
