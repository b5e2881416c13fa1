"""Who belongs to a cluster, and how a peer proves that what it says is its own.

- `identity`: a peer's key pair, its permanent key, signatures
- `certificates`: how a peer is verified, and what the cluster's authority gives it
- `cluster`: the folder that holds a membership, and the TLS contexts made from it
- `revocation`: the authority's signed list of those who belong no more; `renewal`: new
  certificates; `schema_document`: the signed schema
- `descriptors`: what peers say of themselves by gossip, signed
- `event_keys`, `sealing`: events that nobody but their publisher can have made
- `joining`: invitations, join requests, admission, and what the command line calls

Times are arguments, Unix seconds: nothing here but `joining` and TLS itself reads a
clock. TLS checks certificates at each handshake against the machine's clock and cannot be told
otherwise: while the clock is wrong by more than a certificate allows, no new connection comes
about, in either direction, and none that is up is cut; when the clock is right again, all is well.
"""
