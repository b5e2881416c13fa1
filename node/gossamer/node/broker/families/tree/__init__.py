"""Brokers that form a tree: `gossamer.protocol.brokers.tree`. Begin at `host`."""
