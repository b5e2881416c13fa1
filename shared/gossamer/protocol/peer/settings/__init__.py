"""Settings of a peer (`config`), their `presets`, the words of profiles (`profile`).

They are what all other rooms of the peer are made from, and import the kernel only.
"""
