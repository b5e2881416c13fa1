"""The simulator: engines, controls, initialisers, observers and schedules over the protocol."""
