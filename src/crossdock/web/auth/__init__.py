"""Sign-in: the password and sessions of people, and the tokens of programs."""
