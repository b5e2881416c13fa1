"""Topologies that protocols of one's own run over, themselves protocols as one writes them.

`tman` has T-Man with any ranking, as rules and as plain nodes.
"""
