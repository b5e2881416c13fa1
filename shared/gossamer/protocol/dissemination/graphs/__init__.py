"""Graphs of brokers and trees in them: shortest paths, spanning trees and Steiner trees.

Nothing here knows of documents. Begin at `graph` and `steiner`.
"""
