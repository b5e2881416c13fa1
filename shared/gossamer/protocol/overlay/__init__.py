"""overlay rules."""
