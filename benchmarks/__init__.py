"""Measurements, with the setting of OpenMP that the stages have."""

import contextlib

with contextlib.suppress(ImportError):  # benchmarks.gpu may run where only transformer/ and benchmarks/ are
    import pipeline  # noqa: F401
