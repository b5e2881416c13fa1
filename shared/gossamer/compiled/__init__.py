"""Where hosts keep machine code of rules between runs: `store`. Begin at `keep_compiled_code`.

`beside` is a process that makes code for another one. Hosts import this; the protocol does not, as
it knows no files: its kernel has what keeps code (`protocol.kernel.rules`), makes it
(`protocol.kernel.standalone`) and names it (`protocol.kernel.keyed_code`).
"""
