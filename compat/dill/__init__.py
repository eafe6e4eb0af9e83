"""dill's own tests, which are inside its wheel."""
