"""Every block of the tutorial runs, in the order of the page. `python -m tests.test_tutorial` draws its pictures anew."""

import os
import re
from pathlib import Path

import matplotlib
import pytest

from tests.support.models import OLD

PAGE = Path(__file__).parents[1] / "docs/tutorial/README.md"


def run_blocks() -> None:
    """Run the blocks of the page in the current folder, where they write their pictures."""
    names: dict = {}
    with matplotlib.rc_context({"svg.hashsalt": "tutorial", "font.size": 9}):
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
            exec(compile(block, PAGE.name, "exec"), names)


@pytest.mark.slow
def test_each_block_runs_and_draws_the_pictures_of_the_page(here):
    (here / "models/demo-tiny").mkdir(parents=True)
    (here / "models/demo-tiny/average").symlink_to(OLD / "model")
    run_blocks()
    shown = re.findall(r"\]\((\w[\w-]*\.svg)\)", PAGE.read_text(encoding="utf-8"))
    assert shown and set(shown) == {path.name for path in here.glob("*.svg")}
    assert {path.name for path in PAGE.parent.glob("*.svg")} == set(shown)


if __name__ == "__main__":
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # the pictures have the same bytes each time
    models = Path("models").resolve()
    if not models.is_dir():
        raise SystemExit("test_tutorial: models/ is missing; `make reproduce` trains the model that the tutorial uses")
    os.chdir(PAGE.parent)
    Path("models").symlink_to(models)
    try:
        run_blocks()
    finally:
        Path("models").unlink()
