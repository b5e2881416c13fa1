"""Replays churn on real peers of this machine and sets them beside simulated ones.

Stands above both hosts: it runs the node's peers by the simulator's traces and workloads, and
measures them by the simulator's measures.

command      what `gossamer node replay` does from beginning to end
plan         who comes and goes and what is published when, as in the simulation
processes    those that hold the peers, started, fed and watched over
worker       one of them, with what it sees of its peers; loads no compiler, no readers of traces
lines        what they are told, and tell
controller   plays a plan on them
recorder     what was seen of the peers, and the tables of a run made of that
"""
