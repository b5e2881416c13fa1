"""Loops over rows that have a second form for interpreters: searching, comparing, finding boxes.

Begin at `row_search`.
"""
