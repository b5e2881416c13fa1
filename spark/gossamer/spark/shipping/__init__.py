"""What executors need of this installation: packed, sent, and compared with what they have.

packing    archives of the package, and of an environment with all that it depends on
sending    ``--py-files`` and ``--archives``
versions   whether executors have what the driver has

Begin with `packing`.
"""
