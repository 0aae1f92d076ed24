"""Prefetching changes the time at which a batch is made, and nothing else."""

import subprocess
import sys
import threading

import pytest

from tests.projects import ROOT
from transformer.data import Prefetch


def test_any_step_may_be_requested():
    prefetch = Prefetch(lambda step: step**2, 3)
    assert [prefetch(step) for step in (0, 1, 2, 7, 8, 3, 3, 4)] == [0, 1, 4, 49, 64, 9, 9, 16]


def test_the_thread_begins_with_the_given_call():
    threads = []
    prefetch = Prefetch(lambda step: threads.append(threading.current_thread()), 2, lambda: threads.append("begun"))
    prefetch(1)
    prefetch.close()
    assert threads[0] == "begun" and "begun" not in threads[1:] and threading.main_thread() not in threads


def test_only_the_next_steps_are_made_in_a_thread():
    made, done = [], threading.Event()

    def make(step):
        made.append((step, threading.current_thread() is threading.main_thread()))
        if step == 7:
            done.set()
        return step

    prefetch = Prefetch(make, 2)
    prefetch(5)
    assert done.wait(60)
    prefetch.close()
    assert made == [(5, False), (6, False), (7, False)]


def test_an_error_is_raised_when_its_step_is_requested():
    prefetch = Prefetch(lambda step: 1 // (2 - step), 3)
    assert [prefetch(0), prefetch(1)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        prefetch(2)
    assert prefetch(3) == -1


@pytest.mark.slow
def test_a_failing_process_exits():
    """The prefetch thread is busy and has more requests. The process waits for them, then exits."""
    code = "import time\nfrom transformer.data import Prefetch\n"
    code += "Prefetch(lambda step: time.sleep(0.1 * step), 4)(0)\n1 / 0"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and done.stderr.strip().endswith("ZeroDivisionError: division by zero")
