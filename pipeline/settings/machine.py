"""The block `machine`: the hardware and its use. A change of these settings makes no stage stale."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pipeline.settings.addresses import Mirror
from transformer.config.reading import Count, Pattern, Positive, read

NAMES = "one of auto, cpu, cuda (mps, which is Apple's, was never compared with a CPU)"
Device = Annotated[Literal["auto", "cpu", "cuda"], Pattern("auto|cpu|cuda", NAMES)]


@dataclass(frozen=True)
class MachineConfig:
    """The block `machine` of params.yaml. The folder of a mirror need not exist until something is downloaded."""

    device: Device
    kernels: Literal["auto", "off"]
    nodes: Count
    processes: Count
    mirror: Mirror | None
    save_every_minutes: Positive
    time_limit_minutes: Positive | None
    keep_states: bool | None


def machine(params: Mapping[str, Any]) -> MachineConfig:
    return read(MachineConfig, params.get("machine"), "params.yaml: machine")
