"""A node that is a broker: one of `gossamer.protocol.brokers` between sockets, clocks and files.

- `kinds`, `scot_kind`: what differs between brokers of trees and of SCOTs
- `node`: what it is made of, from a configuration
- `engine`: one message after another through the broker's door, stored before its effects happen
- `journal`: what is stored; `members`: clients, and what they have not got yet
- `links`, `scot_links`: neighbours; `dialling`: finding them; `wire`: frames between brokers
- `assembly`: all of it joined
- `content`, `session`, `server`: the local socket
- `routes`: where messages went; `tables`, `numbers`: what it tells of itself
"""
