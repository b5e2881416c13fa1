"""What runs protocols of plain classes: an engine, links and samplers.

The study of protocols imports from here. Begin with `driver`.
"""
