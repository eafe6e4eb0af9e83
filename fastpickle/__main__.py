"""``python -m fastpickle``: hands over to ``fastpickle.cli``."""

from __future__ import annotations

import sys

from fastpickle.cli import main

if __name__ == "__main__":
    sys.exit(main())
