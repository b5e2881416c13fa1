"""The rules of a SCOT broker: subscription broadcast and the three ways to route (Sec. 5, 6).

`broadcast` is Algorithm 1, `bid` 2, `static` 3, `dynamic` 4; `routings` holds the three ways as the
same five functions. Beyond the paper: `around` failed links, `cluster_detours`, `covering`. Begin
at `broadcast`.
"""
