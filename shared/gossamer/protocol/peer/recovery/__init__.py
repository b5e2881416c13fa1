"""Finding what somebody lacks by comparing, and making it good; goes beyond the paper.

`occasions` says when, `comparing` what with whom, `answering` what one has, `repairing` what is
done about what differs, `strays` what is held in the wrong place, `own_copies` what a peer has
itself.
Begin at `comparing`.
"""
