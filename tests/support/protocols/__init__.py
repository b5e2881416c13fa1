"""Protocols of one's own, as their authors would write them, for tests of what runs them."""
