"""The pure engine: what is written by Python, in an order of calls that leaves out what stock does twice.

    loop        atoms and short containers: one function, and a stack (`levels`) instead of recursion
     ├─ plain      long containers, and sets
     │   └─ parts     which of their items go to `fastpickle.runs`, as far as the frame has room
     │                 runs ──► groups, columns: many objects of one shape, column by column
     ├─ encoders   a few objects of known types, all or nothing (`tries`: when that is not tried)
     │   └─ template  what one gave, used again
     ├─ rows       objects one after the other that each run somebody's code, as `brief` writes them
     └─ reduce     everything else, by its entry or its reduce
         └─ brief     what somebody's reduce gave, if it is little

Not for: PyPy (`fastpickle.pypy`).
"""
