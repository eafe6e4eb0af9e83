"""numpy's and pandas' objects through dill, joblib and the stdlib's pickler: tests of our own, as upstream has none."""
