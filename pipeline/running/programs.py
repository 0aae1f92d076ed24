"""Runs other programs: git, and the commands of Slurm."""

import subprocess


def said(*command: str) -> str:
    """Return the output of a command. Raises OSError with the message of the command if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
