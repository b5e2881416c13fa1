"""The studies that come with gossamer, a folder each.

Nothing is imported from here but the table of their names. Begin with `peers`.
"""
