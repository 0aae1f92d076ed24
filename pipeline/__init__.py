"""The stages of the pipeline."""

import os

# GNU's OpenMP reads this when torch is first imported. By default, a waiting thread of OpenMP spins for milliseconds. If
# another process uses the same cores, spinning at least halves the speed. With 0, a thread would sleep at once and would
# have to be woken for each operation. OpenMP's threads compute the dev loss, the optimiser's step and whatever Python
# threads do not share.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
