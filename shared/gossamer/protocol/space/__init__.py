"""The identifier ring and the order-preserving hash that maps attribute values onto it."""
