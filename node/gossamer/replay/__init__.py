"""Replays churn on real peers of this machine and sets them beside simulated ones.

Stands above both hosts: it runs the node's peers by the simulator's traces and workloads, and
measures them by the simulator's measures.

- `cli`, `command`: `gossamer node replay`, and what it does from beginning to end
- `plan`: who comes and goes and what is published when, as in the simulation
- `controller`: plays a plan on `processes`, which hold the peers
- `worker`: one of these; loads neither the compiler nor the readers of traces; `lines`: what it is
  sent and answers
- `recorder`: what was seen of the peers, and the tables of a run made of that

Begin at `command`.
"""
