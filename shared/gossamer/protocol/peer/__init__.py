"""The peer of the overlay: `step` takes one record and writes what follows from it.

Below it lie, each importing from those before it only: `settings` (settings, presets, and the
words of a profile), `space` (the identifier ring and the hash that puts attribute values on it),
`sampling` (who else there is), `state` (the arrays of a peer, its link and routing tables, where
values lead), `rendezvous` (installation, delivery, event log, replay), `recovery` (what was missed,
found by comparing) and `topology` (which links a peer keeps, and where on the ring it is).
`record_table` declares every record and what its words mean, `codec` turns records to plain data
and back. `commands` writes the records by which hosts have a peer act, `prefetching` names the
memory that loops over many rows read soon, and `quiet` says for how long a peer may be left alone.
Begin at `step`, which hands on what hosts need.
"""
