"""Events and deliveries of live nodes, followed by Structured Streaming.

reading    the lines that `gossamer sub --into` writes, as frames that grow
due        which deliveries of published events are due, by the subscriptions beside the lines
windows    rates, hit ratio and latencies of windows of time
folder     the new folder: what is followed, batches that are whole, what they say so far
following  puts these together, ends and resumes
"""
