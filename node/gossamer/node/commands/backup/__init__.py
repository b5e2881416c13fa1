"""`gossamer node backup` and `restore`: a peer's folder as one file, and back.

`archive` has the file's format; begin at `making`.
"""
