"""The stages of the pipeline."""

import getpass
import os
import signal
import sys

from pipeline.running import launcher

# GNU's OpenMP reads this when torch is first imported. By default, a waiting thread of OpenMP spins for milliseconds. If
# another process uses the same cores, spinning at least halves the speed. With 0, a thread would sleep at once and would
# have to be woken for each operation. OpenMP's threads compute the dev loss, the optimiser's step and whatever Python
# threads do not share.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

# DVC and Snakemake ask for the name of the user. In a container, a user may be a number without a name.
try:
    getpass.getuser()
except (KeyError, OSError):  # OSError since Python 3.13
    os.environ["USER"] = str(os.getuid())

if sys.argv[:1] == ["-m"]:
    launcher.watch()

# Under `python -m`, a Ctrl-C during the imports ends the process without a traceback. `stage.run` puts the handler back.
if sys.argv[:1] == ["-m"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

# `arithmetic: portable` needs variables of the environment before numpy is imported.
if sys.argv[:1] == ["-m"] and "numpy" not in sys.modules:
    from pipeline.settings.arithmetic import prepare

    prepare(sys.orig_argv[-len(sys.argv)].removeprefix("-m"), sys.argv[1:])
