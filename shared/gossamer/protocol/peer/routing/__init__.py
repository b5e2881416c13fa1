"""Where values lead (Vinifera, Sec. IV-B2): the next hop, and the content routing table.

Begin at `lookup`; `table` holds who asked for what.
"""
