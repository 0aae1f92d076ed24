"""List the studies of studies.yaml, or write the blocks of one into params.yaml, for the next `snakemake` or `dvc repro`.

    python -m pipeline.commands.study            lists the studies
    python -m pipeline.commands.study NAME       selects a study

Selecting rewrites the blocks of a study and corpora_in_use, and changes nothing else in params.yaml. The lines of these
blocks that are in no study are removed and named.
"""

import argparse
import io
import re
from collections.abc import Mapping
from functools import partial

from ruamel.yaml import YAML

from pipeline.orchestrating.results import in_columns
from pipeline.running import stage
from pipeline.settings import params
from pipeline.settings.blocks import STUDIES, described, study, with_studies
from pipeline.settings.check import check, check_study
from pipeline.settings.score_files import within
from transformer.config.reading import UserError, together
from transformer.files import write_file

# A block is the line of its key and the indented lines, list items or closing brackets that follow. Blank lines and
# comments between these lines are part of the block; those after its last line are not.
BLOCK = r"^{key}:[^\n]*(?:\n|\Z)(?:(?:[ \t]*(?:#[^\n]*)?\r?\n)*(?:[ \t]+|- |(?=[\]}}]))[^\s#][^\n]*(?:\n|\Z))*"


def select(text: str, name: str) -> str:
    """Return the text of params.yaml with the study `name` selected. Raises UserError if the result is invalid."""
    settings = with_studies(params.parse(text))
    check_study(settings, name)
    for key, value in study(settings, name).items():
        blocks = list(re.finditer(BLOCK.format(key=key), text, re.MULTILINE))
        if len(blocks) != 1:
            raise UserError(f"params.yaml: {len(blocks)} lines begin with `{key}:`, 1 is expected; edit the file")
        start, end = blocks[0].span()
        text = text[:start] + block(key, value if isinstance(value, list) else dict(value)) + text[end:]
    check(params.parse(text))
    return text


def block(key: str, value: Mapping | list) -> str:
    """Return a block in the style of params.yaml: one line per run, and a list on the line of its key."""
    yaml, out = YAML(typ="safe"), io.StringIO()
    yaml.default_flow_style = None  # only the innermost mappings and lists are written on one line
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # ruamel.yaml declares it as None
    yaml.width = 10_000
    yaml.representer.ignore_aliases = lambda _: True  # a block has no YAML aliases
    yaml.dump({key: value}, out)
    return out.getvalue()


def listing(settings: Mapping) -> str:
    """Return a line for each study: its name, the number of its runs and its description. The selected study is marked."""
    together(partial(check_study, settings, name) for name in settings["studies"])
    rows = [["study", "runs", "", ""]]
    for name in settings["studies"]:
        chosen = study(settings, name)
        mark = "selected" if all(settings.get(key) == value for key, value in chosen.items()) else ""
        rows.append([name, str(len(chosen["runs"])), mark, described(settings, name)])
    return "\n".join([*in_columns(rows), f"{STUDIES} has the runs and the other entries of each study."])


def lost(settings: Mapping, name: str) -> list[str]:
    """The entries of params.yaml that the selection of a study removes, and that no study has."""
    blocks = {key: settings[key] for key in study(settings, name) if isinstance(settings.get(key), Mapping)}
    entries = [(key, entry) for key, block in blocks.items() for entry in block]
    known = settings["studies"].values()
    return [f"{key}.{at}" for key, at in entries if all(within(each, key, at) != blocks[key][at] for each in known)]


def main(arguments: argparse.Namespace) -> None:
    path, text = params.PARAMS, params.text_of()
    settings = with_studies(params.parse(text))
    if arguments.name is None:
        return print(listing(settings))
    selected, removed = select(text, arguments.name), lost(settings, arguments.name)
    write_file(path.resolve(), selected)  # a link stays a link
    if removed:
        print(f"removed from {path}; these entries are in no study of {STUDIES}: {', '.join(removed)}")
    print(f"{path} selects {arguments.name}: `snakemake --cores all` or `dvc repro` builds it, `make plan` estimates it")


if __name__ == "__main__":
    parser = stage.parser("study", __doc__)
    parser.add_argument("name", nargs="?", help="a study")
    stage.run(main, parser, checked=False)
