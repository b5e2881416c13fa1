"""The rules of every graph broker: documents on trees, link state, the coordinator's directives.

Begin at `forwarding`.
"""
