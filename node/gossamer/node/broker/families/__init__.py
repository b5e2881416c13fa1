"""The families of brokers as nodes run them: settings, links, and what is told of their tables.

A family is a folder, and registers in `gossamer.node.config.families` with the `BrokerFamily` of
its `settings`. A family does not know another, and no other folder knows one. Begin at
`gossamer.node.broker.contract.host`, the interface.
"""
