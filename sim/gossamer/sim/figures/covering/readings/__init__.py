"""Both readings of the papers on filter aggregation: settings, service times, sentences.

Studies of bursts and scenes import from here; it imports nothing of them. Begin with `readings`.
"""
