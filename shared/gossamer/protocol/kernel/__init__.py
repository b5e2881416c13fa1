"""What every rule needs and no rule is.

`rules`, `struct` and `compiler` run one function compiled or interpreted with the same result;
`code_keys` and `keyed_code` know which machine code is whose; `standalone` compiles rules by
themselves, to be called by their address; `quicker_compiler` makes compiling quicker. `records` are
the words that cross between rows, `draws` the random numbers, `rows` the loops
over rows that have a second form for interpreters. Every error of the protocol derives from
one in `errors`. It imports nothing of gossamer. Begin at `rules`.
"""
