"""Broker overlays under the event engine's clock: bursts of unsubscriptions, coverings compared.

`overlay_engine`, `service_times` and `topology` are brokers and links; `covering_workload`,
`siena`, `commuters`, `game` and `processes` are what clients do, in a `scene`. Figures and
workloads as tables import from here. Begin with `unsubscription_burst`; `scenario` is a run as
TOML, for the `study`; `records` and `plots` are what is left of it.
"""
