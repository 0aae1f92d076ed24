"""The stages of the pipeline.

The OpenMP threads of torch sleep while they wait. Their default is to spin, which halves the speed if another process
uses the same cores.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is first imported
