"""The rules of a tree broker: routing, covering, publications, pruning and unsubscription.

Both pruning papers, Sec. II and IV. Begin at `routing`, then `pruning` and `removal`.
"""
