"""What the papers' clients ask for and do: subscriptions, publications, and who moves when."""
