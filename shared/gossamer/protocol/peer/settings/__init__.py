"""Settings of a peer with their presets (`config`), and the words of its profile (`profile`).

They are what all other rooms of the peer are made from, and import the kernel only.
"""
