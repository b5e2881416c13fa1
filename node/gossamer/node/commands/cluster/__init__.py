"""What those who run a cluster do: init, join, revoke, renew, check, watch, stop.

Begin at `membership`. `renewing` is for certificates, `schema_changes` for what events are made of;
`checking` is check and doctor, `watching` status and top, `listing` the members, `control` reload.
"""
