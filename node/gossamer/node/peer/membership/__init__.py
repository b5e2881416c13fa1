"""Who belongs to the cluster: admission, revocation, renewal, and this peer's own status.

Peers and brokers share it. `admission` lets in, `revocation` shuts out, `renewal` keeps
certificates valid, its own and those of `renewal_requests`; `documents` spreads what the authority
signs, versions of the schema among it, `cluster_reports` asks members how they are. Begin at
`services`.
"""
