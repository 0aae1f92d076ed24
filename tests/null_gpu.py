"""Run a Python command on a GPU that computes nothing: `PYTHON -m tests.null_gpu -m benchmarks.gpu --part train`.

It shows what the host does for a GPU: its time, the launches, torch's peak memory, the programs that torch.compile makes
(Triton compiles them for an H100), the waits of the host, and operations that CUDA does not permit while a graph is
captured. All results are zero or arbitrary, so checks of values fail. cuDNN and the profiler of kernels do not work.

PYTHON has to have a CUDA build of torch (tried: 2.11.0+cu130 and 2.13.0+cu130). g++, nm and the headers of a CUDA toolkit
are needed; the toolkit is at CUDA_HOME or /usr/local/cuda. The library is built in build/null-gpu. With NULL_GPU_REPORT=1,
it prints the number of launches at the end.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import torch

FOLDER = Path(__file__).parent.parent / "build/null-gpu"
SOURCE = Path(__file__).with_suffix(".cpp")
NAMES = re.compile(r" U ((?:__cuda|cuda|cublas|cuFile|cu[A-Z])\w+)")  # of functions that torch takes from CUDA's libraries
UNUSED = ("cuStreamWriteValue32_v2", "cuTensorMapEncodeTiled", "cuFuncSetAttribute", "cuCtxSetLimit")  # that Triton needs


def built() -> Path:
    """The library, which stands for the driver, the runtime and cuBLAS."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    packages = Path(torch.__file__).parent.parent
    libraries = [str(path) for path in packages.glob("torch/lib/lib*.so") if path.name.startswith(("libtorch", "libc"))]
    undefined = subprocess.run(["nm", "-D", *libraries], capture_output=True, text=True, check=True).stdout
    written = set(re.findall(r"\b(\w+)\(", SOURCE.read_text(encoding="utf-8")))
    names = sorted({*NAMES.findall(undefined), *UNUSED} - written)
    library = FOLDER / "libcuda.so.1"
    functions, stubs = FOLDER / "stubs.cpp", "\n".join(f"long {name}() {{ return 0; }}" for name in names)
    functions.write_text(f'extern "C" {{\n{stubs}\n}}\n', encoding="utf-8")
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")
    headers = [f"-I{path}" for path in (*sorted(packages.glob("nvidia/*/include")), toolkit)]
    flags = ["-shared", "-fPIC", "-O1", f"-Wl,-soname,{library.name}"]
    subprocess.run(["g++", *flags, *headers, str(SOURCE), str(functions), "-o", str(library)], check=True)
    link = FOLDER / "libcuda.so"
    link.unlink(missing_ok=True)
    link.symlink_to(library.name)
    return library


def main(words: list[str]) -> int:
    library = built()
    environment = os.environ | {
        "LD_PRELOAD": str(library),
        "LD_LIBRARY_PATH": str(FOLDER),
        "TRITON_LIBCUDA_PATH": str(FOLDER),
        "TRITON_CACHE_DIR": str(FOLDER / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(FOLDER / "inductor"),
    }
    return subprocess.run([sys.executable, *words], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
