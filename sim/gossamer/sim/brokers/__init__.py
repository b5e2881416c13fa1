"""Broker overlays under the event engine's clock: topologies, service times, queues and links."""
