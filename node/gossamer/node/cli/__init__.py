"""The subcommands `gossamer node`, `sub`, `pub`, `top` and those of brokers' clients.

They read arguments; what they do is in `commands`. `publishing`, `subscribing`, `requests` and
`broker` are those of applications, `options` what they have in common. Begin at `node`.
"""
