"""The trio node: the protocol on real sockets."""
