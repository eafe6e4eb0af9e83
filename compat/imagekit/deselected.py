"""Tests of django-imagekit that may fail accelerated although they pass on stock."""

from __future__ import annotations

from compat._suite import Deselection

DESELECTED: tuple[Deselection, ...] = ()
