"""Broker overlays under the event engine's clock: bursts of unsubscriptions, coverings compared.

`overlay` has brokers, links and service times, `workloads` what clients do. Figures and workloads
as tables import from here. Begin with `burst`; `scenario` is a run as TOML.
"""
