"""What a SCOT broker remembers and says: overlay, messages, effects, tables, congested links."""
