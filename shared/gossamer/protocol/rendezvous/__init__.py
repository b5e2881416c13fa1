"""rendezvous rules."""
