"""Result folders: written whole, read back, compared, printed and drawn.

Studies and commands may import from here. Begin with `results`; what a kind of run has of its own
(measures, pictures, facts) is asked of its study.
"""
