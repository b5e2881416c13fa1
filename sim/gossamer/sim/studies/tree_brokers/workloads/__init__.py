"""What the papers' clients ask for and do: subscriptions, publications, and who moves when.

Figures and workloads as tables import from here. Begin with `scene`, which carries out what the
others draw.
"""
