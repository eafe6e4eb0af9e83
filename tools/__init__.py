"""The Pythons of the test matrix, and the command that runs it: scripts, and ``mirror``, which compat/ shares."""
