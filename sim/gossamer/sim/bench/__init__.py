"""Benchmarks of speed and memory, on protocols of peers and on two that do next to nothing.

Only the command line imports from here. Begin with `benchmarks`, of cycles;
`engine_benchmarks` has those of events, `bench_plot` the picture.
"""
