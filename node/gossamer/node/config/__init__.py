"""What a node can be configured with: sections, presets, checks, and the layers they come from.

`node` holds all sections, `broker` and `delivery` have some of them, `checks` those of single
settings, `file` reads presets, TOML, environment and flags. Begin at `node`.
"""
