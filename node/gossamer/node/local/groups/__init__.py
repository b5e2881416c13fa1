"""Queue groups: each event goes to one worker, of whichever peer.

- `service`: all groups of one node, and the questions of other peers about them
- `group`: this peer's part in one of them, with the workers of this node; `leading`: as its leader
- `log`: the events of a group that this peer keeps
- `wire`: what peers of a group ask and answer
"""
