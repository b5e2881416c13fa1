"""Indexes over many filters: what a publication matches, and which filters cover each other.

- `index`: `MatchingIndex`, the one that brokers, routing tables and clients use.
- `composite_matcher`: composite subscriptions over a time window; `plans`, `waiting`: how parts and
  publications are found that go together.
- `dimensions`: values as 64-bit keys in the same order.
- `tree`, `search`: arrays and rules; `questions`, `storage`: the host's side of them.
"""
