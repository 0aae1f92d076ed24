"""Measurements, with the setting of OpenMP that the stages have."""

import transformer  # noqa: F401  before torch is imported
