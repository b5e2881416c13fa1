"""Dissemination trees in the simulator: topologies, workloads, and strategies compared.

- `topology`, `generators`, `files`: brokers on a general graph, made up or real.
- `workload`, `workload_file`: keywords, subscriptions and documents, drawn or read.
- `strategies`, `comparison`: what every strategy costs on one topology and workload.
- `scenario`, `scenario_file`: a run as TOML; `simulation`, `records`, `results`: run and kept.
- `measures`, `plots`, `pictures`: what people look at.
"""
