"""Libraries on our base: `fastpickle.backends.dill`, `cloudpickle`, `joblib` and `datasets`.

Each has the `Pickler`, `dump` and `dumps` of its library, or its hashers and `hash`, on `fastpickle.Pickler` instead of
the stock class, and patches nothing.  What `hooks` has to know of a library (which of its overrides leave plain data
alone) is there too.

Nothing is imported here: a library's module needs the library.
"""
