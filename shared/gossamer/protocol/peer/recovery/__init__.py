"""Finding what somebody lacks by comparing, and making it good; goes beyond the paper.

`occasions` says when, `comparing` what with whom, `answering` what one has, `repairing` what is
done about what differs, `held_copies` what a peer holds for itself, or for nobody any more. Begin
at `comparing`.
"""
