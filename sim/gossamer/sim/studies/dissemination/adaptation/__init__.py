"""Trees that follow a workload that changes, and what that costs in messages.

Nothing else imports from here but benchmarks and tests. Begin with `adaptation`.
"""
