"""What every study uses, and nothing about any of them.

Anything may import from here; this folder imports no study but by the name under which it is
registered. Begin with `contract` (what a study is) and `scenarios` (how one is found, and
scenario files of every kind).
"""
