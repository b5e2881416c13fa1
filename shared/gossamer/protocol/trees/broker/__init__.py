"""Brokers of a general graph, whose documents travel on trees that a coordinator keeps making.

After Sec. III-A and VI of the paper. The one door is `broker.TreeBroker.handle`: a message in,
effects out; no clock, socket or file. Read in this order:

- `messages`, `effects`, `settings`: what crosses the door; `problem`: what trees are made for
- `chart`, `interests`, `routes`, `state`: what is remembered
- `forwarding`: documents on trees, and around what fails
- `news`: what brokers tell of themselves; `directives`: what the coordinator tells
- `coordinator`: samples in, trees out; `surroundings`, `planning`: what they are made from, and how
- `keywords`: documents and subscriptions that are sets of words
- `clients`, `broker`: clients, and the door itself
- `codec`, `dump`: as plain data
"""
