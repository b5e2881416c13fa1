"""Events and deliveries of live nodes, followed by Structured Streaming.

`due` says which deliveries of published events are due by the subscriptions beside the lines that
`gossamer sub --into` writes, in windows of time: rates, hit ratio, latencies. `following` reads the
lines and writes the folder, batch by batch, ends and resumes: begin there.
"""
