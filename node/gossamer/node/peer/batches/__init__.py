"""The way of events through a busy peer: all frames that came together, by one call of rules.

What a peer does with each of them is the protocol's `step`, as with every other record; here is
what carries frames to it and from it. `event_batches` is the door, `buffers` is what rules and host
hand each other, `exchange` and `taking` have the rules; `machine_code` finds their code or has it
made by `making`. Frames that are not about events go one by one (`peer.inbound`).
"""
