"""Each door, made from the settings, in a module of its own: the code of a door that stays closed is not loaded."""
