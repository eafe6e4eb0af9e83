"""Dumps that are made at once: of little, or by C as a whole, without what a dump of much begins and ends with.

    fastpickle.dumps(obj), dill.dumps(obj) ──► quick    all of it by C, without a pickler
    fastpickle.dumps(obj), where no C is ────► unmade   small plain data without a pickler
    pickler.dump(obj) ─┬────────────────────► repeats  not at once: as little as the last one like it, hook by hook
                       ├────────────────────► races    by C or by a plan? no: as stock does, if that was sooner
                       └────────────────────► small    plain data: all its bytes by one function, and one write
                                               ├── few     the same with instances, dates, classes ... in it
                                               └── tasks   a library's: functions, and what they are called with

What turns out to be too much goes on in the loop (`fastpickle.engine`), from where it is.

Not for: digests (`fastpickle.digests.small_hashes`).
"""
