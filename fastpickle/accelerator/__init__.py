"""The C pickler, CPython's ``_pickle`` accelerator: what it is asked for `graft`, and what is made of what it wrote.

    may it, is it worth it?   offers           which objects, and when
                              weights          how much is in a container
    it writes                 cpickler         it gives up at what is not known to be as Python would write it
    is it what Python writes? differences      found out afterwards, of which `glance` knows the easy half;
                              mending          the last batches of some containers are ended anew: `batches`
                                               knows which, `reading` where
    into frames and file      splicing
    into the memo             lazymemo         or left with it until somebody looks
    other ways to ask it      chunks           long containers, so that little is held
                              unmemoized       numbers, which need no memo

Not for: a Python without ``_pickle``.
"""
