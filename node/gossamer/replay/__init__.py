"""Replays churn on real peers of this machine and sets them beside simulated ones.

Stands above both hosts: it runs the node's peers by the simulator's traces and workloads, and
measures them by the simulator's measures.

command      what `gossamer node replay` does from beginning to end
plan         who comes and goes and what is published when, as in the simulation
crew         the processes that hold the peers, started, fed and watched over
worker       one of these processes; loads neither the compiler nor the readers of traces
observer     what a worker sees of one of its peers
lines        what crew and workers tell each other
conductor    plays a plan on a crew
notebook     what was seen of the peers
tables       from there to the tables of a run
"""
