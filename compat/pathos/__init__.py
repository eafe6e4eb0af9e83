"""pathos's own tests, which are inside its wheel.

There is no ``speed.py`` here: what pathos pickles goes through multiprocess's connections, which have one, and the
rest of a map is processes.
"""
