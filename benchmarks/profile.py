"""The time of training steps by groups of operations, from torch.profiler."""

import re
from collections import Counter
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

# A kernel (on a GPU) or an operator (on a CPU) belongs to the first group whose pattern its name contains.
GROUPS = {
    "attention": r"attention|flash|fmha|cudnn.*sdpa|softmax_warp",
    "matrix products": r"gemm|cutlass|nvjet|wgmma|cublas|addmm|\bmm\b|::mm|::bmm|linear",
    "Adam": r"adam|multi_tensor",
    "softmax and loss": r"softmax|nll|gather|scatter|cross_entropy",
    "norms": r"layer_norm|layernorm|native_layer",
    "compiled, fused": r"triton",
    "embedding, rows chosen": r"embedding|index",
    "dropout's numbers": r"random|philox|dropout|bernoulli",
    "copies and zeros": r"memcpy|memset|copy|fill|zero|cat",
}


def group_of(name: str) -> str:
    lower = name.lower()
    return next((group for group, pattern in GROUPS.items() if re.search(pattern, lower)), "other")


def print_profile(run: Callable[[], object], steps: int, device: torch.device) -> None:
    """Call `run`, which makes `steps` steps, and print the time per step of each group and of the longest kernels."""
    cuda = device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with profile(activities=activities) as profiled:
        run()
        if cuda:
            torch.cuda.synchronize()
    kernels: Counter[str] = Counter()
    for event in profiled.key_averages():
        if cuda and (event.device_type == torch.autograd.DeviceType.CPU or event.is_user_annotation):
            continue
        kernels[event.key] += event.self_device_time_total if cuda else event.self_cpu_time_total
    groups: Counter[str] = Counter()
    for name, microseconds in kernels.items():
        groups[group_of(name)] += microseconds
    for title, rows in (("where ours spends it", groups.most_common()), ("longest", kernels.most_common(12))):
        print(f"| {title} | ms a step | share |\n|---|---:|---:|")
        for name, microseconds in rows:
            print(f"| {name[:80]} | {microseconds / 1e3 / steps:.2f} | {microseconds / kernels.total():.1%} |")
        print()
