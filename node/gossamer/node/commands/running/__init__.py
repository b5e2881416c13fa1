"""`gossamer node run`: a peer (`running`) or a `broker` as a `process`, or `several` processes.

`service` makes a systemd unit. Begin at `running`.
"""
