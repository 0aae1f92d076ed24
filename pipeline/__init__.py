"""The stages. Threads that wait sleep: spinning, torch's default, halves the speed where another process is at work."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is first imported
