"""Lets the processes that cloudpickle's tests start on PyPy 8 import cloudpickle, as the process with the tests can.

``python`` imports this module when it starts.  Only their path leads here (``child.py``), and what they run stays
stock: cloudpickle subclasses ``pickle._Pickler``, as its code for PyPy was written for.
"""

import pickle

pickle.Pickler = pickle._Pickler
