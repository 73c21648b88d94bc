"""The example of a shop whose work is done by jobs."""
