"""PyPy, whose JIT makes other things fast and slow than CPython's interpreter does: the same bytes by plainer code.

    save        `Pickler.save`, and what goes through a reduce     in the place of `fastpickle.pickler`, `engine.reduce`
    straight    atoms and containers                               of `engine.loop`, `engine.plain` and `runs`
    looks       what a hook forbids                                of `hooks.plan`, `doubts.settled`

Nothing here is imported on CPython.
"""
