"""Measurements, with the setting of OpenMP that the stages have."""

import pipeline  # noqa: F401
