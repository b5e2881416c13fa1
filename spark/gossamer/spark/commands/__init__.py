"""The subcommand `gossamer spark`: `cli` reads arguments, `tables` prints. Above all else here."""
