"""From records of the protocol to frames between peers and back, with who is who.

- `core`: one peer of the protocol without clock or network; `address_book`: its handles
- `wire`: records to `frame_types` and back; `event_frames`: those about single events
- `events`: exact values, as applications know them
- `descriptor_authentication`, `event_authentication`: signatures of what peers say of themselves
  and of events, by keys of `publishers` and `certificate_requests`; `forgeries`: what has none

Begin at `core` and `wire`.
"""
