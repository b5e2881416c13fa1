"""What a tree broker remembers: both tables, its links, what was sent on them, statistics.

`state` holds all of it, `outbox` the effects of one step. Begin at `state` and `subscriptions`.
"""
