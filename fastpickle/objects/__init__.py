"""What is known of objects before they are written: who reduces them, and whether that runs anybody's code.

    an object, its class ──► instances ──► by whom it is reduced, and the same way by C and by Python?
                                 ├── asked      what a reduce asks the object and its class for
                                 ├── stdlibs    the standard library's types: do their reduces ask nobody?
                                 ├── bytecode   a function of the class's own: does it only read the object?
                                 └── arrays     numpy's: do its functions in C reduce it?
                             known     ──► may C save this class by name, and call this reduce, for this pickler?
                             values    ──► what it gives, asked in stock's way
                             likely    ──► a short look that may be wrong: is it worth asking any of that?
                             last      ──► what came of it in the last dump, which the next one is often like

Not for: what a pickler's own hooks forbid (`fastpickle.hooks`).
"""
