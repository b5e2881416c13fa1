"""The studies that come with gossamer, a folder each; `gossamer.sim.built_in_studies` lists them.

None of them imports from another. Begin with `peers`.
"""
