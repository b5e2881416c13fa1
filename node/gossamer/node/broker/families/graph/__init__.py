"""Brokers of a general graph: `gossamer.protocol.brokers.graph`. Begin at `host`."""
