"""What clients of a node do from the command line: subscribe, publish, ask a broker.

Begin at `publishing` and `subscribing`.
"""
