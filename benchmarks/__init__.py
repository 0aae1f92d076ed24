"""Measurements, with the setting of OpenMP that the stages have (pipeline/__init__.py says why)."""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "1000")
