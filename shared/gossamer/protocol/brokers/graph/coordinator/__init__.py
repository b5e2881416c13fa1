"""The coordinator (Sec. VI): samples in, trees out; every broker can be it.

`surroundings` gathers what trees are made from, `planning` makes them. Begin at `coordinator`.
"""
