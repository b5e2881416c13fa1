"""What makes the compiler quicker, by private parts of it; `compiler` applies both.

`linked_later` compiles rules apart and links them at the end; `asked_once` answers once what the
compiler asks again and again. Neither imports anything of gossamer. Begin at `linked_later`.
"""
