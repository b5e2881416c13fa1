"""Queue groups: each event goes to one worker, of whichever peer.

- `service`: all groups of one node, and the questions of other peers about them
- `group`: this peer's part in one of them, `leading`: as its leader
- `workers`: the applications of this node that take its events
- `other_peers`: where the other peers of a group are, and questions to them
- `log`: the events of a group that this peer keeps
- `wire`: what peers of a group ask and answer
"""
