"""The structured cyclic overlay: the product of a tree and a complete graph (Sec. 3, 4).

`labels` names brokers and sets of clusters, `topology` knows who is linked to whom, `errors` what
can be wrong. Begin at `topology`.
"""
