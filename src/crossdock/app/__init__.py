"""Tasks of a Python application: write functions, push calls of them, and let workers execute them."""
