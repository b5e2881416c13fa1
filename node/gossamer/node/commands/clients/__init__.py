"""What clients of a node do from the command line: subscribe, publish, request, ask a broker.

Begin at `publishing` (with `event_text`, and `table_events` from tables of a workload) and
`subscribing`. `requesting` waits for replies, `asking` is for clients of brokers.
"""
