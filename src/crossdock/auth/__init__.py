"""Who may connect and how: TLS."""
