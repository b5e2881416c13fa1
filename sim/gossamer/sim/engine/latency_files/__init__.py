"""Latencies from files: matrices of measurements, topologies of routers, coordinates.

Studies import from here, and `churn` the `text_files`, which cut tables into cells; this imports
`engine.latency`, which knows no file, and nothing else in `engine` imports from here. Begin with
`site_latency`, which makes a model of any of them: `matrices`, and `topologies` from `router_files`
and `graph_files`. Other programs wrote these files: what may mean two things, or is not what it
says of itself, is refused.
"""
