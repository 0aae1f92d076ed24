"""Every error in params.yaml is refused with a line that names the place, the value and what is valid."""

import copy
import datetime
import functools
import itertools
import json
import math
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft7Validator

from pipeline.commands import schema, study
from pipeline.settings.blocks import ADDED, STUDY, with_studies
from pipeline.settings.check import check
from pipeline.settings.params import parse
from tests.support.in_process import command
from tests.support.projects import ROOT, with_settings
from tests.support.refusals import refusals, spoilt

# A nested list with 10^30 references to one text. To print, copy or compare the whole list would never end.
ENDLESS = functools.reduce(lambda inner, _: [inner] * 10, range(30), "x")

# Blocks whose keys are names chosen by the user
CATALOGUES = {"runs", "corpora", "models", "hardware", "peak_tflops", "studies", "archives"}

NUMBERS = {"hardware", "peak_tflops", "save_every_minutes", "time_limit_minutes"}  # may be fractions
# What is possible until other settings, or the files with these names, are looked at
NULL = {"mirror", "time_limit_minutes", "keep_states", "licence", "archives", "train", "dev", "test", "test_filtered"}
NULL |= {"sha256", "md5", "archive", "source", "target", "source_sha256", "target_sha256", "lines"}
TEXTS = {"source", "target", "mirror", "licence", "archive", "corpora_in_use", "studies"}


@pytest.fixture
def small(params) -> dict[str, Any]:
    """params.yaml with a few entries of each catalogue, because the others are alike."""
    table3 = params["studies"]["demo-table3"]["runs"]
    studies = {
        "demo": {"runs": params["studies"]["demo"]["runs"]},
        "demo-table3": {"runs": {run: table3[run] for run in ("demo-tiny-base", "demo-tiny-h1")}},
    }
    return {
        **params,
        "studies": studies,
        "corpora": {name: params["corpora"][name] for name in ("demo", "multi30k", "wmt14-en-fr")},
        "models": {name: params["models"][name] for name in ("base", "big", "quick", "tiny")},
    }


def places(value: Any, *path: Any) -> Iterator[tuple]:
    """Yield the path of each value in nested mappings and lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, *path, key)


def inside(params: dict, path: tuple) -> Any:
    return functools.reduce(lambda inner, key: inner[key], path, params)


def levels(params: dict) -> Iterator[tuple[list[tuple], str]]:
    """Yield the paths of one depth, which can be wrong at once, with the file. A study is checked after all others."""
    paths = sorted({*places(params)} - {("studies",)}, key=lambda path: (path[0] == "studies", len(path)))
    for (of_study, _), level in itertools.groupby(paths, lambda path: (path[0] == "studies", len(path))):
        yield [*level], "studies.yaml" if of_study else "params.yaml"


def place(path: tuple, file: str) -> str:
    """The beginning of a line about the value at `path`, as a regular expression."""
    named = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path[file == "studies.yaml" :])
    return rf"{file}: {re.escape(named.removeprefix('.'))}(?![\w-])"


def may_be(path: tuple, value: Any, wrong: Any) -> bool:
    """Whether the value at `path` may be `wrong` as well, since a whole number is a number, for example."""
    if wrong is None:
        return path[-1] in NULL or path[0] == "studies"
    if isinstance(wrong, str):
        return value is None or (isinstance(value, str) and not TEXTS.isdisjoint(path))
    if isinstance(wrong, dict):
        return path[0] in NUMBERS
    if isinstance(wrong, bool) or isinstance(value, bool):
        return type(wrong) is type(value)
    number = value is None or isinstance(value, (type(wrong), float)) or not NUMBERS.isdisjoint(path)
    return isinstance(wrong, (int, float)) and 0 <= wrong < math.inf and number


def test_the_projects_own_is_right(params, small):
    check(spoilt(params, "decodings.d", {**LINE, "decoder": None}))
    check(small)


WRONG = [7, 2.5, True, "no such thing", [1], {"a": 1}, None, -1, math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("wrong", [*map(pytest.param, WRONG), pytest.param([{"wrong": ENDLESS}], id="endless")], ids=str)
def test_every_setting_refuses_each_other_type_and_what_is_out_of_its_range_by_its_place(small, wrong):
    for paths, file in levels(small):
        paths = [path for path in paths if not may_be(path, inside(small, path), wrong)]
        changed = copy.deepcopy(small)
        for path in paths:
            inside(changed, path[:-1])[path[-1]] = wrong
        said = "\n".join(refusals(changed)) if paths else ""
        assert [path for path in paths if not re.search(f"^{place(path, file)}", said, re.MULTILINE)] == []


def test_every_key_that_is_misspelt_or_missing_in_base_is_refused_in_one_line(small):
    for paths, file in levels(small):
        keys = [path for path in paths if isinstance(path[-1], str) and CATALOGUES.isdisjoint(path[-2:-1])]
        keys = [path for path in keys if (path[0], len(path)) != ("studies", 3)]  # of the blocks of a study, all but one
        wrong, lacking = copy.deepcopy(small), copy.deepcopy(small)
        for path in keys:
            mapping = inside(wrong, path[:-1])
            mapping[f"{path[-1]}_"] = mapping.pop(path[-1])
        said = refusals(wrong) if keys else []
        for path in keys:
            start = place((*path[:-1], f"{path[-1]}_"), file) + f": unknown key; did you mean {path[-1]!r}"
            assert any(re.match(start, line) for line in said), path
        base = [path for path in keys if path[0] == "base"]
        assert len(base) == sum(line.startswith("params.yaml: base") for line in said), "and none as a missing key, too"
        for path in base:
            del inside(lacking, path[:-1])[path[-1]]
        said = "\n".join(refusals(lacking) if base else [])
        assert all(re.search(f"{place(path, file)} is missing", said) for path in base)


def test_names_are_looked_up_beside_types_and_then_all_entries_are_compared(params):
    (line,) = refusals(spoilt(spoilt(params, "runs.demo-tiny.corpus", "dmo"), "runs.demo-tiny.d_model", 3))
    assert line.startswith("params.yaml: runs.demo-tiny.corpus: 'dmo'"), "names are looked up before settings are compared"
    number = {"sets": {2017: {"corpus": "demo", **BOTH}}, "decodings": {"d": LINE | {"set": "2018"}}}
    said = refusals({**params, **number})
    assert [line.split()[1] for line in said] == ["sets:", "decodings.d.set:"], "also beside a name that is a number"
    params = spoilt(params, "runs.second", {"corpus": "demo", "model": "tiny", "keep": 2})
    for place, value in {"runs.demo-tiny.d_model": 3, "corpora_in_use": ["multi30k"], "decodings.second": LINE}.items():
        params = spoilt(params, place, value)
    starts = [
        "second",
        "demo-tiny.d_model: 3",
        ": 'second' is also",
        "corpora_in_use: ['multi30k'] is not possible; [demo],",
    ]
    said = refusals(params)
    assert len(said) == 4 and all(any(start in line for line in said) for start in starts), "of several entries"


LINE = {"model": "demo-tiny/average", "set": "demo-test"}
BOTH = {"source": "text/a", "target": "text/b"}
EARLY = {"corpus": "demo", "model": "tiny", "patience": 1, "evaluate_every": 60}
# Checkpoints are written at the steps 15, 35, 55, 75 and 95, and dev losses at 10, 20, ..., 90 and 95
LATE = {"training": {"steps": 95, "checkpoint_every": 20, "evaluate_every": 10}, "averaging": {"choose": "dev_loss"}}


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        ("base.model.d_model", 513, "an even number"),
        ("base.model.dropout", 1.0, "from 0 to below 1"),
        ("base.training.checkpoint_every", 100_001, "at most steps (100000)"),
        ("base.training.micro_batch_tokens", 200, "at most batch_tokens (25000) and micro_batch_tokens (200)"),
        ("base.training.seed", 2**31, "a whole number from 0 to 2147483647"),
        ("base.vocabulary.character_coverage", 1.1, "a number from 0.98 to 1"),
        ("base.vocabulary.segmentations", 2, "1 is expected, since bpe_dropout is 0"),
        ("base.normalise.max_ratio", 0.5, "0 (no limit) or a number of at least 1"),
        ("base.scoring.bootstrap", 10**6, "from 0 to 100000"),
        ("machine.device", "mps", "one of auto, cpu, cuda (mps"),
        ("machine.mirror", "http://[", "machine.mirror: 'http://[' is refused; a URL has a host"),
        pytest.param("hardware.K80", 10**400, "a number above 0", id="hardware"),
        ("corpora.demo.languages", ["en", "eng_Latn"], "two languages are expected"),
        ("corpora.demo.languages", ["en"], "languages: ['en'] is not possible; a list of 2 is expected"),
        ("decodings.size", {"model": "demo-tiny/average", "set": "demo-test"}, "another name is expected: DVC's run cache"),
        ("hardware.nfiles", 1.0, "params.yaml: hardware.nfiles: 'nfiles' is not possible; another name is expected"),
        ("corpora.demo.languages", ["en", "../de"], "a name of at most 100 letters, digits"),
        ("models.quick.averaging.checkpoints", 6, "6 is not possible, because training.keep is 5; at most 5"),
        ("models.quick.averaging.choose", "dev_loss", "that divides checkpoint_every (25) and steps (600) is expected"),
        ("models.quick", {"model": {}, "decoding": {}, **LATE}, "that divides checkpoint_every (20) and steps (95) is"),
        ("runs.demo-tiny", EARLY, "can end it at step 120) writes a checkpoint every 50 steps; at most 3"),
        ("runs.demo-tiny", EARLY | {"checkpoint_every": 300}, "at most 2 is expected"),  # of the steps 100 and 120
        ("models.quick.training.checkpoint_every", 400, "at most 2 is expected"),
        ("studies.demo.runs.demo-tiny.d_model", 3, "studies.yaml: demo.runs.demo-tiny.d_model: 3"),
        ("studies.demo.decodings", {"d": {"model": "h1/average", "set": "demo-test"}}, "valid names are demo-tiny/average"),
        ("sets.demo-test", {"corpus": "demo", **BOTH}, "'demo-test' is also a set of the corpus demo"),
        ("sets.new", {"corpus": "demo", "hold_out": 3}, "sets.new.hold_out: 3"),
        ("decodings.d", {**LINE, "model": "ensembles/e"}, "valid names are demo-tiny/average"),
        ("decodings.d", {**LINE, "set": "demo"}, "'demo' is not a set; did you mean 'demo-dev'?"),
        ("decodings.demo-tiny", LINE, "is also a name in `runs`"),
        ("reverse_scores.r", LINE, "is not the set of a decoding; valid names are none"),
        ("runs", {datetime.date(2026, 11, 27): {}}, "YAML does not read 2026-11-27 as text; put the name into quotes"),
        ("studies.demo.runs.demo-tiny.beam", 1, "studies.yaml: demo.runs.demo-tiny.beam: unknown key; "),
        ("studies.demo.rows", {"demo-x": "N2"}, "studies.yaml: demo.rows: 'demo-x' is not a run of a study"),
        ("studies.demo.rows", {"demo-tiny": "h2"}, "demo.rows.demo-tiny: 'h2' is not possible; the key of a row"),
        ("studies.demo.against", {"demo-tiny": "x"}, "studies.yaml: demo.against: 'x' is not a run of a study"),
    ],
)
def test_impossible_values_are_refused(small, place, value, expected):
    said = refusals(spoilt(small, place, value))
    assert any(expected in line for line in said), said


FOLDERS = ["code", "corpora", "decodings", "downloads", "logs", "progress", "times"]
FOLDERS += sorted({block.folder for block in ADDED.values()} - {""})
NAMES = ["../up", "..", "a\n", "a/b", "a.b", "a;b", "$(x)", "-a", "", "a b", "a@b", "a" * 101, 1, None]


@pytest.mark.parametrize("name", [*NAMES, *FOLDERS])
def test_names_that_cannot_be_folders_stages_and_words_are_refused(params, small, name):
    refusals({**small, "runs": {name: params["runs"]["demo-tiny"]}})
    for block in ("corpora", "models", "studies") if name in NAMES else ():
        refusals({**small, block: {**small[block], name: next(iter(small[block].values()))}})


FIRST = "base:\n  first: &all\n    steps: "


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("params", None, "params.yaml is not in"),
        ("params", "runs: [", "params.yaml cannot be read"),
        (
            "params",
            "a: 1\n<<<<<<< HEAD\nb: 2\n=======\nb: 3\n>>>>>>> other\n",
            "params.yaml, line 2: <<<<<<< is a conflict marker of git",
        ),
        ("params", "a: 1\nruns: {a: {}, b: {}, a: {}}", 'found duplicate key "a"'),
        (
            "params",
            "a: {dropout: 0,1, warmup: 1,000}",
            "a comma ends a setting, the decimal mark is a point, and 1 has no value in line 1",
        ),
        ("params", "a: 1\nruns:\n\tx: {}\n", "in line 3, column 1: '\\tx: {}'"),
        ("params", "- runs", "is not a mapping"),
        ("params", f"{FIRST}2001-99-99\n", "'2001-99-99' is not a valid timestamp in line 3"),
        ("params", f'{FIRST}!!int "abc"\n', "'abc' is not a valid int in line 3"),
        ("params", f"{FIRST}{'9' * 5000}\n", "9...9"),
        ("params", f"{FIRST}!!omap [{{b: 1}}, {{b: 2}}]\n", "a key occurs twice"),
        ("params", "studies: {}", "params.yaml: studies: unknown block; studies are in studies.yaml"),
        ("studies", "runs:\n  a b", "studies.yaml: runs: 'a b' is not possible"),
        ("studies", "a/b: {runs: {}}", "studies.yaml: 'a/b' is not possible; a name of"),
    ],
    ids=lambda text: text and text[:40],
)
def test_a_file_that_is_none_or_holds_a_value_that_is_none_is_refused_in_one_line(tmp_path, file, text, expected):
    with_settings(tmp_path)
    path = tmp_path / f"{file}.yaml"
    path.unlink() if text is None else path.write_text(text)
    done = command(tmp_path, "pipeline.commands.check")
    assert done.returncode == 1
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


# Schemas for editors


@pytest.mark.parametrize("name", schema.FILES)
def test_the_schemas_are_current_and_accept_what_is_shipped(params, name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == schema.schema(schema.FILES[name], (ROOT / "params.yaml").read_text(encoding="utf-8")), "`make schema`"
    file = name.replace("schema.json", "yaml")
    assert (ROOT / file).read_text(encoding="utf-8").startswith(f"# yaml-language-server: $schema={name}\n")
    validator = Draft7Validator(json.loads(text))
    Draft7Validator.check_schema(validator.schema)
    described = validator.schema["definitions"]["Run"]["properties"]["h"]
    assert described["description"] == "attention heads", "the comment of params.yaml"
    shipped = parse((ROOT / file).read_text(encoding="utf-8"))
    assert list(validator.iter_errors(shipped)) == []
    run = shipped["runs"]["demo-tiny"] if file == "params.yaml" else shipped["demo"]["runs"]["demo-tiny"]
    for key, value in {"stepz": 3, "h": 0, "norm": "posst", "dropout": True, "corpus": None}.items():
        before = copy.copy(run)
        run[key] = value
        assert len(list(validator.iter_errors(shipped))) == 1, key
        run.clear()
        run.update(before)


# Studies


@pytest.fixture
def text() -> str:
    return (ROOT / "params.yaml").read_text(encoding="utf-8")


def test_selecting_a_study_of_each_kind_changes_its_blocks_and_no_other_byte(text):
    """A kind has the same blocks. The check of params.yaml reads the entries of all studies."""
    studies = with_studies(parse(text))["studies"]
    kinds = {tuple(STUDY.keys() & of): name for name, of in studies.items()}
    head, tail = text[: text.index("\nruns:")], text[text.index("\n# The hardware and its use") :]
    for name in kinds.values():
        selected = study.select(text, name)
        after = parse(selected)
        assert all(after[block] == studies[name].get(block, {}) for block in STUDY)
        assert selected.startswith(head) and selected.endswith(tail)
        assert study.select(selected, "demo") == text
    assert set(parse(study.select(text, "paper"))["corpora_in_use"]) == {"wmt14-en-de", "wmt14-en-fr"}
    marked = re.findall(r"^(\S+) +\d+ +selected", study.listing(with_studies(parse(text))), re.MULTILINE)
    assert marked == ["demo"]
    twice = [{"corpus": "demo", "model": "tiny"}] * 2  # as by an alias of YAML
    written = "runs:\n  a: {corpus: demo, model: tiny}\n  b: {corpus: demo, model: tiny}\n"
    assert study.block("runs", dict(zip("ab", twice))) == written
    wrong = text.replace("demo-tiny: {corpus: demo, model: quick}\n\ncorp", "demo-tiny: {corpus: dmo}\n\ncorp")
    assert wrong != text and study.select(wrong, "demo") == text, "a wrong selection can be put right"


def test_blocks_written_otherwise_are_found_and_a_link_is_kept(tmp_path, text):
    plain = "runs:\n  demo-tiny: {corpus: demo, model: quick}\n\ncorpora_in_use: [demo]\n"
    in_lines = "runs:  # mine\n    demo-tiny:\n        corpus: demo\n\n        # why\n        model: quick\n"
    divided = "runs:\n\n  demo-tiny: {corpus: demo,\n    model: quick}\n"
    expected = text.replace(plain, plain.replace("corpora", "# between\ncorpora"))
    assert expected != text
    written = ["runs: {demo-tiny: {corpus: demo, model: quick}}\n", in_lines, divided, divided]
    for runs, corpora in zip(written, ("[demo]\n", "\n  - demo\n", "\n- demo\n", "[\n  demo\n]\n")):
        assert study.select(text.replace(plain, f"{runs}\n# between\ncorpora_in_use: {corpora}"), "demo") == expected
    last = text.replace("corpora_in_use: [demo]\n", "")
    assert study.select(f"{last}corpora_in_use: [demo]", "demo") == f"{last}corpora_in_use: [demo]\n"
    shared, link = tmp_path / "shared.yaml", tmp_path / "params.yaml"
    own = "runs:\n  demo-tiny-h1: {corpus: demo, model: tiny, h: 2}\n"  # of another study, with another h
    shared.write_text(text.replace("runs:\n", own, 1), encoding="utf-8")
    link.symlink_to(shared)
    shutil.copy(ROOT / "studies.yaml", tmp_path)
    wrong = command(tmp_path, "pipeline.commands.study", "papr")
    assert wrong.returncode == 1 and "did you mean 'paper'?" in wrong.stderr
    said = command(tmp_path, "pipeline.commands.study", "table2")
    assert said.returncode == 0 and "in no study of studies.yaml: runs.demo-tiny-h1\n" in said.stdout
    assert link.is_symlink() and shared.read_text(encoding="utf-8") == study.select(text, "table2")
