"""The engines that run a protocol of rules over many nodes: in cycles, or event by event.

Anything may import from here; nothing here knows a study. Begin with `cycle_engine`; `event_engine`
runs the same protocols over links with latency and loss (`latency`, `link_conditions`), by
`event_loop` and `event_queue`, and `windows` does so on several threads. `latency_files` reads
models of latency, `loops` compiles the loops, `protocol_run` is for scripts.
"""
