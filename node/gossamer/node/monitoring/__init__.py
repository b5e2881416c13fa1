"""What a node says of itself to those who run it: `logs`, `metrics` of Prometheus, `members`.

`metrics` names every number, and what is counted by cause and kind, `looks` when to look at what
nobody tells of. It imports nothing of the node, so that everything may log and count.
"""
