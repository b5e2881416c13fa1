"""Publish/subscribe overlays of one's own, beside the shipped ones in a scenario of peers.

Begin with `overlay`: what such a class derives from, is given, and says.
"""
