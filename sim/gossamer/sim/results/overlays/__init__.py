"""Overlays of runs as files: snapshots in result folders, and exports for other programs.

Commands and the page may import from here. Begin with `snapshots`.
"""
