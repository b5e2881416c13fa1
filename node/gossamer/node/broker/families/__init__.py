"""The families of brokers as nodes run them: settings, links, and what is shown of their tables.

A family is a module (`tree`, `scot` with `scot_links`, `graph`), which registers in
`gossamer.node.config.broker` with the `BrokerFamily` of its settings, a module of their own since
every node loads them (`tree_settings`, `scot_settings`, `graph_settings`). A family does not know
another, and no other folder knows one. Begin at `gossamer.node.broker.host`, the interface.
"""
