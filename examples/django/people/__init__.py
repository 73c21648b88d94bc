"""The users of the project."""
