"""The block `machine`: the hardware and its use. A change of these settings makes no stage stale."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from transformer.config.reading import read, require


@dataclass(frozen=True)
class MachineConfig:
    """The block `machine` of params.yaml."""

    device: Literal["auto", "cpu", "cuda"]
    kernels: Literal["auto", "off"]
    nodes: int
    processes: int
    mirror: str | None
    save_every_minutes: float
    time_limit_minutes: float | None

    def __post_init__(self) -> None:
        for key in ("nodes", "processes"):
            require(getattr(self, key) > 0, key, getattr(self, key), "a whole number above 0 is expected")
        for key in ("save_every_minutes", "time_limit_minutes"):
            value = getattr(self, key)
            require(value is None or value > 0, key, value, "a number of minutes above 0 is expected")


def machine(params: Mapping[str, Any]) -> MachineConfig:
    return read(MachineConfig, params.get("machine"), "params.yaml: machine")
