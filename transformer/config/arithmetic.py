"""What the setting `arithmetic: portable` needs of a process, before it imports torch and numpy."""

from typing import Literal

from transformer.config.reading import require

Arithmetic = Literal["native", "portable"]

# The vector width of torch and of oneDNN, the kernels of MKL, and those of NumPy's OpenBLAS. NumPy's OpenBLAS reads its
# variables when numpy is imported; torch, MKL and oneDNN read theirs at their first operation.
VARIABLES = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
}


def require_float32(precision: str, arithmetic: str) -> None:
    """Raise UserError for portable arithmetic in bfloat16, in which libraries of different CPUs sum differently."""
    require(
        arithmetic != "portable" or precision != "bfloat16", "precision", precision, "arithmetic: portable is in float32"
    )
