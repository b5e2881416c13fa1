"""The way of events through a busy peer: all frames that came together, by one call of rules.

What a peer does with each of them is the protocol's `step`, as with every other record; here is
what carries frames to it and from it. `buffers` is what the rules read and write, `taking` has
the rules. Frames that are not about events go one by one (`peer.inbound`).
"""
