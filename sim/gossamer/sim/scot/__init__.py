"""Structured cyclic overlays under a simulated clock: finite links, output queues, bursts."""
