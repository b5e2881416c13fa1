"""Content-aware dissemination trees: brokers on a general graph, documents on few trees.

After Majumder, Shrivastava, Rastogi, Srinivasan, "Scalable Content-Based Routing in Pub/Sub
Systems" (INFOCOM 2009); sections, figures and equations named in this package are that paper's.
Read in this order:

- `graphs`: brokers with links, shortest paths, spanning trees, Steiner trees
- `sample`: documents with subscriptions; `cost`: what documents cost on trees (Eq. 1)
- `stars`: low-stretch spanning trees
- `plan`: Algorithm 1, the tree of one group of subscriptions
- `grouping`, `strategies`: Algorithms 3 and 2, and all strategies of Sec. VII
- `semcast`, `optimum`: what these are compared with
- `capacities`: links that carry only so much
"""
