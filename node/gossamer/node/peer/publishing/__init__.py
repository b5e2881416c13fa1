"""From an application's values to events of the overlay that are acknowledged.

- `event_publisher`: checks values, makes events of them, has these sealed and published
- `publications`: those under way, until they are acknowledged or given up

Begin at `event_publisher`.
"""
