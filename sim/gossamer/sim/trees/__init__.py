"""Dissemination trees in the simulator: topologies, workloads, and strategies compared.

- `topology`, `generators`, `files`: brokers on a general graph, made up or real.
- `workload`: keywords, subscriptions and documents with a locality of x %.
- `comparison`: what every strategy costs on one topology and workload.
"""
