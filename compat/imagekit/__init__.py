"""django-imagekit's own tests: its cache file names are hashes by a direct subclass of pickle._Pickler.

``imagekit.hashers.CanonicalizingPickler`` copies the stock class's ``dispatch`` at import, replaces its entries for
dict and set by functions that sort, and works at protocol 0.

Why not torch.package, the best-known direct subclass: on Linux, torch 2.15.0 and what it needs from the package index
are a download of 3.0 GB (29 wheels, for CPython 3.13), it has no source distribution that could have its tests, and
``torch.package`` cannot be imported without torch's compiled core.  Why not apache-beam (400 MB installed): of its
picklers, one is for dill 0.3.1.1, and the others sit on the C pickler.
"""
