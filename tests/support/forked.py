"""Runs DVC, Snakemake, the stages and pytest-xdist's processes as forks of servers that have imported their libraries.

A fork saves one to six seconds. `run` starts a command in a fork and returns when it has ended. The fork has its own
working directory, environment and output, like a process of its own. If it starts DVC or a module of `pipeline` by
`python -m`, this is a fork as well. No module of the project is imported in advance, because a test may edit it.

A test that kills or interrupts a tool starts a process of its own instead, with the arguments of `Project.command`.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

# The server's folder has its socket and a program that DVC, Snakemake and pytest-xdist run instead of Python. The program
# passes these, and the modules of `pipeline`, to the server, and everything else to Python. The fork joins its process
# group.
SOCKET, PROGRAM = "socket", "python"
SOURCE = """\
#!{python} -IS
import json, os, socket, sys
FORKED = ["-u", "-c"], ["-m", "dvc"], ["-m", "snakemake"]
if sys.argv[1:3] not in FORKED and not "".join(sys.argv[1:3]).startswith("-mpipeline."):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as server:
    server.connect({path!r})
    request = {{"module": sys.argv[2], "arguments": sys.argv[3:], "folder": os.getcwd(), "environment": dict(os.environ)}}
    request["group"] = os.getpgrp()
    socket.send_fds(server, [json.dumps(request).encode() + b"\\n"], [0, 1, 2])
    status = int(server.makefile().readline())
    sys.exit(status if status >= 0 else 128 - status)
"""
TOOLS = ("dvc", "snakemake", "pipeline.orchestrating.single")
# What they import, partly only when they need it. Snakemake imports each plugin that is installed.
IMPORTED = (
    "dvc.cli.parser dvc.commands.repro dvc.data_cloud dvc.dirs dvc.lock dvc.repo.reproduce dvc.repo.status dvc.rwlock "
    "dvc.scm dvc_render flatten_dict scmrepo.git networkx ruamel.yaml requests smart_open docutils yte jinja2 "
    "snakemake.cli snakemake.scheduling.job_scheduler snakemake_executor_plugin_slurm "
    "torch torch.optim torch.distributed torch._dynamo safetensors.torch sentencepiece sacrebleu.metrics "
    "sacremoses langcodes filelock matplotlib.backends.backend_svg matplotlib.figure"
)
# What most files of tests import
OF_TESTS = "torch torch._dynamo pandas scipy.stats transformers.models.marian optuna fastapi matplotlib.figure networkx"
FOLDER = "FORKED"  # the environment variable with the folder of the server


def start(imported: str, **variables: str) -> Path:
    """Start a server with these variables of the environment. It ends with this process. Returns its folder."""
    place = Path(tempfile.mkdtemp(prefix="forked-"))
    program = place / PROGRAM
    program.write_text(SOURCE.format(python=sys.executable, path=str(place / SOCKET)))
    program.chmod(0o755)
    left_out = ("PYTHONDONTWRITEBYTECODE", "OPENBLAS_L2_SIZE")
    clean = {key: value for key, value in os.environ.items() if key not in left_out} | variables
    server = subprocess.Popen([sys.executable, __file__, place, imported], stdin=subprocess.PIPE, env=clean)
    assert server.stdin
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    atexit.register(server.stdin.close)
    return place


def start_for_stages() -> None:
    """Start the server of this process and the processes that it starts."""
    from transformer.config.arithmetic import VARIABLES  # not in the server, where a test may edit it

    os.environ[FOLDER] = str(start(IMPORTED, **VARIABLES))


def folder() -> Path:
    """The folder of the server, which is started if necessary, once the server listens."""
    if FOLDER not in os.environ:
        start_for_stages()
    return listening(Path(os.environ[FOLDER]))


def listening(place: Path) -> Path:
    """Wait until the server of this folder listens."""
    ends = time.monotonic() + 300
    while not (place / SOCKET).exists():
        assert time.monotonic() < ends, "the server has not started"
        time.sleep(0.05)
    return place


def with_program(env: dict[str, str]) -> dict[str, str]:
    """An environment in which `python` is the program of the server."""
    return {**env, "PATH": os.pathsep.join([str(folder()), env["PATH"]])}


def run(module: str, arguments: Sequence[str], cwd: Path, env: dict[str, str], stdin: int | None = None) -> tuple[int, str]:
    """Run `python -m MODULE ARGUMENTS` as a fork. Returns its exit status and its output, including standard error."""
    request = {"module": module, "arguments": arguments, "folder": str(cwd), "environment": with_program(env)}
    with socket.socket(socket.AF_UNIX) as server, tempfile.TemporaryFile() as output, open(os.devnull) as nothing:
        server.connect(str(folder() / SOCKET))
        files = [nothing.fileno() if stdin is None else stdin, output.fileno(), output.fileno()]
        socket.send_fds(server, [json.dumps(request).encode() + b"\n"], files)
        status = int(server.makefile().readline())
        output.seek(0)
        return status, output.read().decode("utf-8", errors="replace")


def serve(place: Path, imported: str) -> None:
    """Fork for each request, until standard input is closed."""
    sys.path[0] = str(place)  # not this folder: a module of the tests must not hide one of a package
    for name in imported.split():
        importlib.import_module(name)
    if "snakemake.cli" in sys.modules:
        sys.modules["snakemake.cli"].get_argument_parser()  # finds the plugins, for all forks
    gc.freeze()  # a collection in a fork would copy the memory of all these modules
    running: dict[int, tuple[int, socket.socket]] = {}  # each fork and its connection, by the descriptor of the fork
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place / "new"))
        listening.listen(64)
        (place / "new").rename(place / SOCKET)
        while sys.stdin not in (ready := select.select([sys.stdin, listening, *running], [], [])[0]):
            for descriptor in running.keys() & ready:
                fork, connection = running.pop(descriptor)
                os.close(descriptor)
                status = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
                with connection, contextlib.suppress(OSError):  # a killed test no longer waits
                    connection.sendall(f"{status}\n".encode())
            if listening in ready:
                connection, _ = listening.accept()
                if (fork := os.fork()) == 0:
                    listening.close()
                    status = 1
                    try:
                        status = answered(connection, place)
                    finally:
                        os._exit(status)
                running[os.pidfd_open(fork)] = fork, connection


def answered(connection: socket.socket, place: Path) -> int:
    """Run the command of a request in this process. Returns its exit status."""
    message, files, _, _ = socket.recv_fds(connection, 2**16, 3)
    while not message.endswith(b"\n"):
        message += connection.recv(2**16)
    request = json.loads(message)
    connection.close()
    with contextlib.suppress(OSError):  # the group is of another session, for example
        os.setpgid(0, request.pop("group", 0) or os.getpgrp())
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    if request["module"] in TOOLS:
        sys.executable = str(place / PROGRAM)
    return status_of(**request)


def status_of(module: str, arguments: list[str], folder: str, environment: dict[str, str]) -> int:
    """Run a module as the main program of this process. Returns the exit status of `python -m`."""
    os.chdir(folder)
    arithmetic = {key: os.environ[key] for key in os.environ if key.startswith(("ATEN_", "MKL_", "ONEDNN_", "OPENBLAS_"))}
    os.environ.clear()
    os.environ.update(environment | arithmetic)  # with which the server has imported numpy and torch
    sys.argv = [module, *arguments]
    sys.path[:1] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.orig_argv = [sys.executable, "-m", module, *arguments]
    try:
        if module == "-c":
            exec(arguments[0], {})
        else:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else 1 if end.code else 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the end of Python does
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2])
