"""Linking object code into any process, with the compiler or without: `object_code`.

It imports nothing of gossamer.
"""
