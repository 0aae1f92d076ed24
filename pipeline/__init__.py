"""The stages of the pipeline."""

import transformer  # noqa: F401  its setting of OpenMP, before torch is imported
