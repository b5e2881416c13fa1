"""Where hosts keep machine code of rules between runs: `store`. Begin at `keep_compiled_code`.

Hosts import this; the protocol does not, as it knows no files. From the protocol it takes
`rules.keep_code_in` alone; names of what is kept are made in `keyed_code`.
"""
