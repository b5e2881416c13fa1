"""What a node says of itself to those who run it: structured logs and Prometheus metrics.

It imports nothing of the node, so that everything may log and count.
"""
