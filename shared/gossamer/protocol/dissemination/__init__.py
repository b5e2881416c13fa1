"""Content-aware dissemination trees: brokers on a general graph, documents on few trees.

After Majumder, Shrivastava, Rastogi, Srinivasan, "Scalable Content-Based Routing in Pub/Sub
Systems" (INFOCOM 2009); sections, figures and equations named in this package are that paper's.
Read in this order:

- `graph`: brokers with links; `paths`, `path_tables`: shortest paths
- `spanning`, `steiner`, `triples`: spanning trees and Steiner trees
- `cost`: samples of documents with subscriptions, and what these cost on trees (Eq. 1)
- `stars`: low-stretch spanning trees
- `plan`: COMPUTETREE (Algorithm 1), the tree of one group of subscriptions
- `grouping`, `strategies`: MULT and MULT2 (Algorithms 3 and 2), and all strategies of Sec. VII
- `semcast`, `optimum`: what these are compared with
- `capacities`: links that carry only so much
"""
