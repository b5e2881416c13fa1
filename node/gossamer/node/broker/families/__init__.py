"""The families of brokers as the node around them sees them.

`kinds` is the interface and the tree broker, `graph` and `scot` are the others; `tables` shows
their tables to people. Begin at `kinds`.
"""
