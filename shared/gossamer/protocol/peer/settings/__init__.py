"""Settings of a peer (`config`), their `presets`, and the words of profiles and descriptors.

They are what all other rooms of the peer are made from, and import the kernel only.
"""
