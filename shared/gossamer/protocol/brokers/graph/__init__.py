"""Brokers of a general graph, whose documents travel on trees that a coordinator keeps making.

After Sec. III-A and VI of the paper. The one door is `core.broker.Broker.handle`: a message in,
effects out; no clock, socket or file. Read in this order:

- `memory`: what crosses the door, and what is remembered
- `routing`: documents on trees and around what fails, link state, the coordinator's directives
- `coordinator`: samples in, trees out
- `keywords`: documents and subscriptions that are sets of words
- `family`: the `Routing`; `broker`: what can be seen of a broker
- `codec`, `dump`: as plain data
"""
