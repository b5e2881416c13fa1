"""Where hosts keep machine code of rules between runs: `store`. Begin at `keep_compiled_code`.

`beside` is a process that makes code for another one. Hosts import this; the protocol does not, as
it knows no files. From the protocol it takes `rules.keep_code_in`, and `standalone.make_all` where
it makes code; names of what is kept are made in `keyed_code`.
"""
