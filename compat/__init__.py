"""Upstream test suites, run stock and accelerated, and compared test by test.

    python -m compat SUITE
          |
          +-- SUITE/suite.py   finds or fetches the upstream tests at a pinned version   -> Suite
          |
          +-- _children.py     one child process per (mode, unit), at most --jobs at once
          |        |
          |        +-- _child.py -> SUITE/child.py   puts the mode in place, runs the tests,
          |                                          writes one JSON line per test  (_record.py)
          |
          +-- _compare.py      stock outcomes x accelerated outcomes                     -> Comparison
          +-- _report.py       the table, the failures, and "N passed, N failed"

A *suite* is one upstream project's tests (cpython, dill, cloudpickle).  A *unit* is what one child process runs: a test
module or a test file.  A *mode* is a way of putting fastpickle in place; the mode "stock" is without it, and every
other mode is compared with it.

What counts is a test that passes on stock: it has to pass accelerated too.  A test that fails or is skipped on stock
says nothing about fastpickle, and is not counted.

This is not the project's own test suite (that is ``tests/``), and it is not installed with the package.
"""
