"""The command line's frame: one command, whose subcommands the hosts bring along."""
