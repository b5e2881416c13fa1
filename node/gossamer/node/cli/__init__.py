"""The subcommands `gossamer node`, `sub`, `pub`, `top` and those of brokers' clients.

They read arguments; what they do is in `commands`. `events` and `requests` are those of
applications. Begin at `node`.
"""
