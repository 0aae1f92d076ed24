"""A real Slurm with two nodes on this machine: Debian's packages, unpacked but not installed, without munge or systemd.

The configuration has to be at /etc/slurm/slurm.conf, because Snakemake's plugin calls `srun` without SLURM_CONF.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import psutil

ETC = Path("/etc/slurm")
ALLOWED = "THIS_MACHINE_MAY_RUN_SLURM"
PACKAGES = ("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "libhwloc15", "liblua5.1-0", "libmunge2")
NODES = ("n1", "n2")
PATIENCE = 120  # seconds for every wait
CONFIGURATION = """\
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
# A requeued job waits until its credential has expired.
AuthInfo=cred_expire=10
PluginDir={libraries}/slurm-wlm
SlurmctldPort={port}
StateSaveLocation={work}/state
SlurmctldPidFile={work}/slurmctld.pid
SlurmctldLogFile={work}/slurmctld.log
SlurmctldDebug=verbose
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=1,sched_min_interval=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MinJobAge=86400
# The default of 300 seconds is the time until a killed node is noticed.
SlurmdTimeout=20
# The stages may request more than this machine has.
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SlurmdSpoolDir={work}/spool.%n
SlurmdPidFile={work}/slurmd.%n.pid
SlurmdLogFile={work}/slurmd.%n.log
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=40000\n"
PARTITION = "PartitionName=main Nodes={nodes} Default=YES MaxTime=INFINITE State=UP\n"


def refusal() -> str | None:
    """Why this machine may not be used, or None."""
    if os.environ.get(ALLOWED) != "1":
        return f"it writes {ETC} and starts Slurm's daemons; {ALLOWED}=1 in the environment allows it"
    if os.geteuid():
        return "Slurm's daemons need root; run it in a container or a virtual machine"
    if ETC.exists():
        return f"{ETC} exists, so this machine may belong to a cluster; remove it if a killed start left it"
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        return "apt-get and dpkg are needed, because the packages are Debian's"
    return None


def unpacked(folder: Path) -> Path:
    """Download Debian's packages into `folder` once, and unpack them. Returns the root of the unpacked files."""
    root = folder.resolve() / "root"
    if not root.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        subprocess.run(["apt-get", "download", *PACKAGES], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, folder / "unpacking"], check=True)
        (folder / "unpacking").rename(root)
    return root


def wait(done: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {patience} s: {what}")
        time.sleep(0.2)


class Slurm:
    """The daemons of one controller and two nodes. `work` receives their logs and states."""

    def __init__(self, root: Path, work: Path) -> None:
        self.work, self.sbin, self.step = work, root / "usr/sbin", root / "usr/sbin/slurmstepd-wlm"
        libraries = root / "usr/lib/x86_64-linux-gnu"
        self.environment = {
            "PATH": os.pathsep.join([str(root / "usr/bin"), os.environ["PATH"]]),
            "LD_LIBRARY_PATH": f"{libraries}:{libraries / 'slurm-wlm'}",
        }
        with contextlib.ExitStack() as stack:
            free = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(1 + len(NODES))]
            ports = [server.getsockname()[1] for server in free]
        host = socket.gethostname()
        self.configuration = (
            CONFIGURATION.format(host=host, libraries=libraries, port=ports[0], work=work)
            + "".join(NODE.format(name=name, host=host, port=port) for name, port in zip(NODES, ports[1:]))
            + PARTITION.format(nodes=",".join(NODES))
        )
        self.daemons: dict[str, subprocess.Popen] = {}

    def __enter__(self) -> Self:
        (self.work / "state").mkdir(parents=True)
        ETC.mkdir()
        try:
            (ETC / "slurm.conf").write_text(self.configuration)
            self.start("slurmctld", self.sbin / "slurmctld-wlm", "-D", "-c")
            for node in NODES:
                self.start_node(node)
            wait(lambda: self.states() == dict.fromkeys(NODES, "idle"), "the nodes are not idle")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in self.daemons.values():
            daemon.kill()
            daemon.wait()
        for process in self.steps():
            self.kill_tree(process)
        shutil.rmtree(ETC, ignore_errors=True)

    def start(self, name: str, *command: object) -> None:
        with open(self.work / f"{name}.out", "a") as output:
            environment = {**os.environ, **self.environment}
            self.daemons[name] = subprocess.Popen(
                [*map(str, command)], stdout=output, stderr=output, env=environment, start_new_session=True
            )

    def start_node(self, node: str) -> None:
        (self.work / f"spool.{node}").mkdir(exist_ok=True)
        self.start(node, self.sbin / "slurmd-wlm", "-D", "-N", node, "-d", self.step)

    def kill_node(self, node: str) -> None:
        """End all processes of a node at once, as a power failure does."""
        self.daemons[node].kill()
        self.daemons.pop(node).wait()
        for process in self.steps(node):
            self.kill_tree(process)

    def steps(self, node: str | None = None) -> Iterator[psutil.Process]:
        """The daemons of the job steps, which are not children of the node's daemon."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.exe() == str(self.step) and node in (None, process.environ().get("SLURMD_NODENAME")):
                    yield process

    def kill_tree(self, process: psutil.Process) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            tree = [process, *process.children(recursive=True)]
            for each in tree:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
            psutil.wait_procs(tree, timeout=PATIENCE)

    def run(self, *command: str) -> str:
        """Run a Slurm command. Returns its output."""
        done = subprocess.run(command, env={**os.environ, **self.environment}, text=True, capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def states(self) -> dict[str, str]:
        with contextlib.suppress(RuntimeError):  # the controller is starting
            return dict(line.split() for line in self.run("sinfo", "-h", "-N", "-o", "%N %T").splitlines())
        return {}
