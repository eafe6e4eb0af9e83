"""The oracle: differential tests against the pickler of the running Python.

    compare      one dump by the oracle, the same dump by ours; every byte, write, hook call and error must be the same
    objects      the classes that are pickled: every form of reduce
    samples      small graphs of all kinds, for hooks to look at
    hooked       subclasses, instance attributes and changes in the middle of a dump
    strategies   random graphs, for Hypothesis and for the soak test
    wild         what is in memory, by a command of its own
    allowed      the differences that are none, each with its reason
    suite_*      the abstract suites; ``tests/test_*.py`` bind them to implementations

Not for: what fastpickle does besides writing pickles.
"""
