"""The event engine that runs row by row, on several threads, where messages take their time.

Within a window no longer than the least latency no row can affect another. Begin with
`window_engine`; `row_loop` is what one thread does with one shard of rows (`shard_entries`), and
`event_calendar` where records wait between windows. `worker_pool` has the workers, `worker_threads`
the threads. Imports what is in `engine`, which imports nothing from here.
"""
