"""Who belongs to the cluster: admission, revocation, renewal, and this peer's own status.

Peers and brokers share it. Begin at `services`.
"""
