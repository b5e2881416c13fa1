"""The node's side of the local socket: who comes in, and the clients of a peer, one session each.

- `server`: who comes in, and how many
- `session`: one client's connection
- `publishing`: what it asks for that publishes
- `ordered`: its events in the order of their publishers

Begin at `session`.
"""
