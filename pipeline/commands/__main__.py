"""List the commands.

python -m pipeline.commands
"""

import argparse
import ast
import signal
from pathlib import Path


def listing(folder: Path) -> str:
    """Return one line for each command in `folder`: how to call it, and the first line of its docstring."""
    commands = {path.stem: path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")}
    width = max(map(len, commands))
    return "\n".join(f"python -m pipeline.commands.{name:{width}}  {first_line(path)}" for name, path in commands.items())


def first_line(path: Path) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_bytes())) or "").partition("\n")[0]


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends this process, as it ends any filter
    argparse.ArgumentParser(prog="commands", description="List the commands").parse_args()
    print(listing(Path(__file__).parent))
