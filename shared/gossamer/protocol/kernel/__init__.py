"""What every rule needs and no rule is.

- `rules`, `struct`, `compiler`: one function compiled or interpreted with the same result, on
  arrays under one name; `compile_errors`: why one cannot be compiled
- `records`: the words that cross between rows; `draws`: the random numbers
- `rows`: loops over rows that have a second form for interpreters; `prefetch`: memory that a
  compiled loop wants soon
- `code_keys`, `keyed_code`: which machine code is whose; `standalone`: rules compiled by
  themselves, called by their address; `linking`, `quicker_compiler`: what makes compiling quicker
- `debugging`: checked runs; `errors`: what every error of the protocol derives from

It imports nothing of gossamer. Begin at `rules`.
"""
