"""Links between brokers: dialling, frames, and what each family sends beside them.

Begin at `links`; `routes` remembers where publications went.
"""
