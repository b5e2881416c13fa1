"""Brokers of a general graph, whose documents travel on trees that a coordinator keeps making.

After Sec. III-A and VI of the paper. The one door is `core.broker.Broker.handle`: a message in,
effects out; no clock, socket or file. Read in this order:

- `messages`, `settings`: what crosses the door, and how a broker is set
- `state`, `network_view`: what is remembered, of itself and of all brokers
- `forwarding`, `link_state`: documents on trees and around what fails; what floods to all
- `coordinator`, `planning`: samples in, trees out
- `broker`: the `Routing` of this family, and what can be seen of a broker
- `codec`: messages and a broker as plain data
"""
