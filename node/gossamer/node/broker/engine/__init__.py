"""The broker state machine in a node: one message after another, each stored before its effects.

Begin at `engine`; `journal` is what survives a crash.
"""
