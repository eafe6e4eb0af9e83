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
          +-- _speed.py        SUITE/speed.py's entry points on _realdata.py, in turns   -> Speed
          +-- _report.py       the table, the failures, and "N passed, N failed"
          +-- _results.py      what the table of all suites and Pythons is made of (python -m compat.table)

A *suite* is one upstream project's tests, in the folder that has its name.  Three ways of running them are shared:
``_pytest.py``, ``_scripts.py`` (dill and pathos, whose tests are scripts) and unittest (``cpython/child.py``).  A
*unit* is what one child process runs: a test module, a test file, or a part of one.  A *mode* is a way of putting
fastpickle in place; the mode "stock" is without it, and every other mode is compared with it.

What counts is a test that passes on stock: it has to pass accelerated too.  A test that fails or is skipped on stock
says nothing about fastpickle, and is not counted.

This is not the project's own test suite (that is ``tests/``), and it is not installed with the package.
"""
