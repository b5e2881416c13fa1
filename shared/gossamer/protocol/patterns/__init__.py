"""What applications do with events beyond publishing and subscribing: the rules, without a host.

- `groups`: queue groups, of which one worker gets each event
- `last_values`: the newest event of every value of an attribute, by the clock of the cluster
- `ordering`: the events of one publisher in its order; the last identifiers, in little memory
- `replies`: requests that wait for replies, and which replies count
"""
