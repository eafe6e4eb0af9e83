"""The interpreter's own tests of pickle, and of the modules that lean on it."""
