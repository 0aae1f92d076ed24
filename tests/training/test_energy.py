"""The energy of a training, with a substitute for NVIDIA's driver library."""

import ctypes
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch

from pipeline.training import energy

GPU = torch.device("cuda")


class Driver:
    """Two GPUs by UUID, with energy counters in millijoules."""

    def __init__(self) -> None:
        self.counters = {b"GPU-a": 5_000_000, b"GPU-b": 70_000_000}
        self.status, self.ready = 0, False

    def nvmlInit_v2(self) -> int:
        self.ready = True
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid, handle) -> int:
        handle._obj.value = list(self.counters).index(uuid) + 1
        return 0 if self.ready else 1  # NVML_ERROR_UNINITIALIZED

    def nvmlDeviceGetTotalEnergyConsumption(self, handle, millijoules) -> int:
        millijoules._obj.value = list(self.counters.values())[handle.value - 1]
        return self.status


@pytest.fixture
def driver(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    uuids = ("a", "b")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: SimpleNamespace(uuid=uuids[number]))
    return driver


def test_the_joules_of_all_gpus_since_the_start(driver):
    one, two = energy.meter(GPU, 1), energy.meter(GPU, 2)
    assert two() == 0
    driver.counters[b"GPU-a"] += 1500
    driver.counters[b"GPU-b"] += 250_000
    assert one() == pytest.approx(1.5) and two() == pytest.approx(251.5)


def test_unknown_is_not_zero(driver, monkeypatch):
    assert energy.meter(torch.device("cpu"), 1)() is None
    started = energy.meter(GPU, 1)
    driver.status = 3  # not supported
    assert started() is None and energy.meter(GPU, 1)() is None
    driver.status = 0
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert energy.meter(GPU, 2)() == 0
    assert energy.meter(GPU, 4)() is None, "two of the GPUs are elsewhere"
    monkeypatch.setattr(ctypes, "CDLL", Mock(side_effect=OSError("no such library")))
    assert energy.meter(GPU, 2)() is None, "a machine without the driver"
