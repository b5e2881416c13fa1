"""Finding what somebody lacks by comparing, and making it good; goes beyond the paper.

`comparing` says when and what with whom, `answering` what one has, `repairing` what is done about
what differs, `strays` what is held in the wrong place. Begin at `comparing`.
"""
