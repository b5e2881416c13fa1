"""What all brokers are: the one door, clients, effects, plain data. How one routes is its family's.

A family is a `routing.Routing` plugged into `broker.Broker`. Nothing here knows a family. Begin at
`broker` and `routing`; `messages` and `effects` are what crosses the door, `codec`, `plain` and
`dump` the same as plain data.
"""
