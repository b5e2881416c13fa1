"""`gossamer node run`: a peer or a broker as a process, or several processes.

Begin at `running`.
"""
