"""The simulator: engines, controls, initialisers, observers and schedules over the protocol."""

from gossamer.compiled.store import keep_compiled_code

keep_compiled_code()
