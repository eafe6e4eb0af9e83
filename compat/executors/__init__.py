"""The interpreter's own tests of executors, bound to those of fastpickle.concurrent."""
