"""What the node around a broker asks of its family, and how tables are shown to people.

Nothing here knows a family. Begin at `host`.
"""
