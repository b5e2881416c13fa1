"""Loops over rows that have a second form for interpreters: searching, comparing, finding boxes.

Begin at `row_search`; `hash_chains` finds a word in a ring, `box_index` the boxes around a point.
"""
