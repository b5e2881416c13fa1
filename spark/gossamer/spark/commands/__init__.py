"""The subcommand `gossamer spark`: reads arguments, prints tables.

Above everything else of the pipeline. Begin at `cli`.
"""
