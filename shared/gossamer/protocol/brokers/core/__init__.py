"""What all brokers are: the one door, clients, effects, plain data. How one routes is its family's.

A family is a `Routing` plugged into a `Broker`. Nothing here knows a family. Begin at `broker`;
`messages` and `effects` are what crosses the door, `codec` and `plain_data` the same as plain data;
`clients` is what clients ask for, `state` what is remembered, `arrival_queue` what waits for a
broker, in nodes and in simulations.
"""
