"""The peer of the overlay: `step` takes one record and writes what follows from it.

Below it lie, each importing from those before it only: `settings` (settings, presets, and the words
of a profile), `space` (the identifier ring and the hash that puts attribute values on it),
`sampling` (who else there is), `state` (the arrays of a peer and its link table), `rendezvous`
(routing, installation, delivery, event log, replay), `topology` (which links a peer keeps) and
`places` (where on the ring it stands).
`record_table` declares every record and what its words mean, `codec` turns records to plain data
and back. `subscribing` writes what a peer wants, `commands` the records by which hosts have it act,
`prefetching` tells loops over many rows which memory is read soon. Begin at `step`, which hands on
what hosts need of these.
"""
