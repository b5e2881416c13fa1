"""The subcommands `gossamer node`, `sub`, `pub`, `top` and those of brokers' clients.

They read arguments; what they do is in `commands`. `starting` is what starts peers, `schema` what
events are made of; `events` and `requests` are those of applications. Begin at `node`.
"""
