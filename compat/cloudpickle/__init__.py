"""cloudpickle's own tests, which are in its source tarball only."""
