#!/usr/bin/env bash
# Expected: with `--dist loadgroup`, all tests marked with one xdist_group run in one process, so a fixture of a module is made once.
# Happens: with pytest 9.2.0, the tests of a group are spread over the processes, and each makes the fixture. Nothing is reported. With
#   pytest 9.1.1 they run in one. xdist appends @GROUP to the private attribute _nodeid of a test, which pytest 9.2 no longer reads.
# Versions: pytest-xdist 3.8.0 with pytest 9.1.1 and 9.2.0. Date: 2026-11-29.
# Source: https://github.com/pytest-dev/pytest-xdist/issues/1386.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
cat > test_group.py <<'PY'
import time

import pytest


@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(8))
def test_of_the_group(number, worker_id):
    with open("workers", "a") as file:
        file.write(f"{worker_id}\n")
    time.sleep(0.2)
PY
for version in 9.1.1 9.2.0; do
    venv/bin/pip install -q pytest-xdist==3.8.0 "pytest==$version"
    rm -f workers
    venv/bin/python -m pytest -q -p no:cacheprovider -n 2 --dist loadgroup test_group.py > printed
    echo "pytest $version: $(tail -1 printed); processes that ran the group: $(sort -u workers | wc -l)"
    sort -u workers | wc -l > "of-$version"
done
if [ "$(cat of-9.1.1)" -ne 1 ] || [ "$(cat of-9.2.0)" -ne 2 ]; then
    echo "changed: pytest 9.2.0 keeps a group together, or 9.1.1 does not" >&2
    exit 1
fi
