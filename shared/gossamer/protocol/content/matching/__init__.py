"""Indexes over many filters: what a publication matches, and which filters cover each other.

- `index`: `MatchingIndex`, the one that brokers, routing tables and clients use
- `composite_matcher`: composite subscriptions over a time window, and publications that wait for
  others; `plans`: the order in which the parts of one are looked for
- `dimensions`: values as 64-bit keys in the same order
- `tree`, `search`: arrays and rules; `storage`: the host's side of them
"""
