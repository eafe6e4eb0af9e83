"""Picklers that make digests, joblib's and datasets': texts are not memoized, and dicts are sorted.

    small_hashes    small plain data, at once
    hashing         the loop, for the rest
     ├─ shapes      what dicts of the same keys have in common
     ├─ hashed      objects that no plan contains
     └─ atoms       one by one, for what is written at once

What is known of a library's hooks is told by its backend (`fastpickle.backends`, by way of `fastpickle.rules`).

Not for: picklers that sort dicts or leave out texts in a way that is not known; these go hook by hook.
"""
