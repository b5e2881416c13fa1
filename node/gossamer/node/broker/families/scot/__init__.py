"""Brokers of a structured cyclic overlay: `gossamer.protocol.brokers.scot`. Begin at `host`."""
