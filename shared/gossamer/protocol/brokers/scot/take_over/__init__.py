"""Taking over the clients of dead brokers, and brokers that return; beyond the paper.

`numbered_outbox` numbers and keeps what a broker promises, `relaying` takes subscriptions around
what failed, `resynchronising` is what a broker does until it knows everything again. Begin at
`take_over`.
"""
