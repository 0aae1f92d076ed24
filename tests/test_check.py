"""Every error in params.yaml is refused with one line that says how to correct it."""

import copy
import datetime
import functools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.commands import study
from pipeline.settings.check import check
from pipeline.settings.params import parse
from pipeline.settings.studies import with_studies
from tests.imports import ROOT
from tests.projects import python
from transformer.config.reading import UserError

# A nested list with 10^30 references to one text. To print, copy or compare the whole list would never end.
ENDLESS = functools.reduce(lambda inner, _: [inner] * 10, range(30), "x")

# Blocks whose keys are names chosen by the user
CATALOGUES = {"runs", "corpora", "models", "hardware", "peak_tflops", "studies", "archives"}


@pytest.fixture
def params(params) -> dict[str, Any]:
    """A copy of params.yaml's content that a test may change."""
    return copy.deepcopy(params)


EARLY = {"corpus": "demo", "model": "tiny", "patience": 1, "evaluate_every": 60}


def small(params: dict) -> dict:
    """params.yaml with a few entries of each catalogue, because the others are alike."""
    corpora, models = ("demo", "multi30k", "wmt14-en-fr"), ("base", "big", "tiny")
    table3 = params["studies"]["demo-table3"]["runs"]
    return {
        **params,
        "corpora": {name: params["corpora"][name] for name in corpora},
        "models": {name: params["models"][name] for name in models},
        "studies": {"demo-table3": {"runs": {name: table3[name] for name in ("demo-tiny", "demo-tiny-h1")}}},
    }


def places(value: Any, *path: Any) -> Iterator[tuple]:
    """Yield the path of each value in nested mappings and lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, *path, key)


def inside(params: dict, path: tuple) -> Any:
    for key in path:
        params = params[key]
    return params


def refusal(params: dict) -> str:
    with pytest.raises(UserError) as raised:
        check(params)
    message = str(raised.value)
    assert "\n" not in message
    assert message.startswith(("params.yaml", "studies.yaml: ")) and len(message) < 1000
    return message


def test_the_projects_own_is_right(params):
    check(params)
    check(small(params))


def test_every_value_of_a_wrong_type_is_refused(params):
    params = small(params)
    for path in list(places(params)):
        spoilt = copy.deepcopy(params)
        inside(spoilt, path[:-1])[path[-1]] = [{"wrong": ENDLESS}]
        message = refusal(spoilt)
        assert str(path[-1]) in message or any(str(key) in message for key in path[:-1]), path


# A value of each type in params.yaml. The only conversion is from a whole number to a number.
SAMPLES = {int: 7, float: 2.5, bool: True, str: "text", list: [1], dict: {"a": 1}, type(None): None}
NUMBERS = {int, float}
MINUTES = ("save_every_minutes", "time_limit_minutes")  # may be fractions, though params.yaml has whole numbers


def refused(params: dict, path: tuple, value: Any) -> str:
    """Return the message for `value` at `path`, or "" if it is accepted."""
    spoilt = copy.deepcopy(params)
    inside(spoilt, path[:-1])[path[-1]] = value
    try:
        check(spoilt)
    except UserError as error:
        return str(error)
    return ""


def may_be_left_out(params: dict, path: tuple) -> bool:
    left = copy.deepcopy(params)
    del inside(left, path[:-1])[path[-1]]
    try:
        check(left)
    except UserError:
        return False
    return True


def leaves(params: dict) -> list[tuple]:
    return [path for path in places(params) if not isinstance(inside(params, path), (dict, list))]


@pytest.mark.slow
def test_every_setting_refuses_each_other_type_by_its_key(params):
    params = small(params)
    for path in leaves(params):
        kind, optional = type(inside(params, path)), may_be_left_out(params, path)
        if kind is type(None):
            kinds = {bool, list, dict}  # the types that are accepted besides null are unknown here
        else:
            takes_any_number = kind is float or path[0] in ("hardware", "peak_tflops") or path[-1] in MINUTES
            kinds = (
                SAMPLES.keys() - {kind} - (NUMBERS if takes_any_number else set()) - ({type(None)} if optional else set())
            )
        for wrong in kinds:
            message = refused(params, path, SAMPLES[wrong])
            file = "studies.yaml" if path[0] == "studies" and len(path) > 1 else "params.yaml"
            assert message.startswith(f"{file}: ") and "\n" not in message, (path, wrong)
            assert str(path[-1]) in message or str(path[-2]) in message, (path, wrong, message)


# Names of files, of members of archives and of folders, which are checked when they are opened.
PLACES = {"source", "target", "mirror"}


def test_every_number_refuses_what_is_none_and_below_its_range_and_every_name_what_is_not_there(params):
    params = small(params)
    for path in leaves(params):
        value = inside(params, path)
        if type(value) in NUMBERS:
            for wrong in (-1, float("nan"), float("inf"), -float("inf")):
                assert refused(params, path, wrong), (path, wrong)
        elif type(value) is str and path[-1] not in PLACES:
            message = refused(params, path, "no such thing")
            assert "no such thing" in message or f"params.yaml: {path[0]}: " in message, (path, message)


def test_every_key_that_is_misspelt_is_refused_with_the_right_one(params):
    params = small(params)
    for path in list(places(params)):
        parent = inside(params, path[:-1])
        if (
            isinstance(parent, list)
            or (path[-2:-1] and path[-2] in CATALOGUES)
            or (path[0] == "studies" and len(path) in (1, 3))
        ):
            continue
        spoilt = copy.deepcopy(params)
        mapping = inside(spoilt, path[:-1])
        mapping[f"{path[-1]}_"] = mapping.pop(path[-1])
        message = refusal(spoilt)
        assert f".{path[-1]}_: unknown key" in message, path
        assert f"did you mean '{path[-1]}'?" in message, path


def test_every_key_of_base_must_be_there(params):
    for path in list(places(params["base"], "base")):
        spoilt = copy.deepcopy(params)
        del inside(spoilt, path[:-1])[path[-1]]
        assert f"{path[-1]} is missing" in refusal(spoilt)


OF_SET, OF_DEMO = {"source": "text/a", "target": "text/b"}, {"model": "demo-tiny/average", "set": "demo-test"}
IN_DECODING = "beam belongs in `decoding` of a model (models.NAME.decoding) or an entry of `decod"


# Negative numbers, other types, unknown names and unknown keys are tested above, for every setting.
@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        ("base.model.d_model", 513, "a multiple of h (8)"),
        ("base.model.h", 0, "above 0"),
        ("base.model.dropout", 1.0, "from 0 to below 1"),
        ("base.training.checkpoint_every", 100_001, "at most steps (100000)"),
        ("base.training.seed", 2**63, "from 0 to 2**63 - 1"),
        ("base.training.threads", 0, "from 1 to 1024"),
        ("base.training.threads", 1025, "from 1 to 1024"),
        ("base.averaging.checkpoints", 0, "above 0"),
        ("base.decoding.beam", 0, "above 0"),
        ("base.vocabulary.character_coverage", 1.1, "a number from 0.98 to 1"),
        ("base.scoring.seed", 2**63, "from 0 to 2**63 - 1"),
        ("base.scoring.bootstrap", 10**9, "up to 100,000"),
        ("machine.nodes", 0, "above 0"),
        ("machine.mirror", "http://[", "is refused; a URL has a host"),
        ("machine.mirror", "http://host:port/copies", "is refused"),
        ("machine.mirror", "ftp://host/copies", "ftp: is refused"),
        ("corpora.wmt14-en-de.download.archives.europarl.url", "http://[/a.tgz", "is refused"),
        ("corpora.wmt14-en-de-hub.download.train.parquet", ["http://[/a.parquet"], "is refused"),
        ("machine.save_every_minutes", 0, "above 0"),
        ("hardware.K80", 10**400, "a number is expected"),
        ("corpora.demo.languages", ["en", "en"], "two languages are expected"),
        ("corpora.demo.languages", ["en"], "a list"),
        ("corpora.demo.languages", ENDLESS, "a list"),
        ("corpora.demo.languages", ["en", "../de"], "letters, digits"),
        ("runs.demo-tiny.corpus", ENDLESS, "a name is expected"),
        ("runs.demo-tiny.corpus", "dmo", "is not in corpora or back_translations; did you mean 'demo'?"),
        ("runs.demo-tiny.model", "tinny", "is not in models; did you mean 'tiny'?"),
        ("runs.demo-tiny.h", 3, "a multiple of h (3)"),
        ("models.tiny.model.h", 3, "a multiple of h (3)"),
        ("models.tiny.averaging.checkpoints", 6, "because training.keep is 5; at most 5"),
        ("runs.demo-tiny", EARLY, "1200 steps (patience can end it at step 120)"),
        ("models.tiny.decoding.alpha", 40, "40.0 is not possible; a number from 0 to 10 is expected"),
        ("models.tiny.decoding.batch_tokens", 10**30, "a number from 0 to 2147483647 is expected"),
        ("models.tiny.training.batch_tokens", 10**30, "a number above 0 and below 2**31 is expected"),
        ("models.tiny.training.checkpoint_every", 400, "at most 3 is expected"),
        ("studies.demo.runs.demo-tiny.h", 3, "studies.yaml: demo.runs.demo-tiny.d_model: 128"),
        ("studies.demo.runs.demo-tiny.model", "tny", "is not in models; did you mean 'tiny'?"),
        ("studies.demo.runs", {}, "studies.yaml: demo.runs is empty"),
        ("studies.demo.decodings", {"d": {**OF_DEMO, "model": "demo-h1/average"}}, "the models are demo-tiny/average"),
        ("sets.demo-test", {"corpus": "demo", **OF_SET}, "the corpus demo has a set of this name"),
        ("sets.new", {"corpus": "dmo", **OF_SET}, "new.corpus: 'dmo' is not in corpora; did you mean 'demo'?"),
        ("sets.new", OF_SET, "sets.new.corpus is missing"),
        ("sets.new", {"corpus": "demo", "hold_out": 3}, "sets.new.hold_out: this is not a setting of a set"),
        ("sets.new", {"corpus": "demo", "archive": "dev", **OF_SET}, "dev is not an archive of"),
        ("ensembles.e", {"first": "demo-tiny/average"}, "ensembles.e.second is missing"),
        ("ensembles.e", {"first": "demo-tiny/average", "second": "x/average"}, "the models are demo-tiny/average"),
        ("decodings.d", {**OF_DEMO, "model": "ensembles/e"}, "the models are demo-tiny/average"),
        ("decodings.d", {**OF_DEMO, "model": "demo-tiny"}, "the models are demo-tiny/average"),
        ("decodings.d", {**OF_DEMO, "set": "test"}, "the sets are demo-dev, demo-test"),
        ("decodings.d", {"model": "demo-tiny/average"}, "decodings.d.set: None is not possible"),
        ("decodings.d", {**OF_DEMO, "beam": 0}, "decodings.d.beam: 0"),
        ("decodings.d", {**OF_DEMO, "bean": 2}, "did you mean 'beam'?"),
        ("decodings.demo-tiny", OF_DEMO, "is also a name in `runs`"),
        ("values.demo-tiny", {"model": "demo-tiny/average", "corpus": "demo"}, "is also a name in `runs`"),
        ("reverse_scores.r", OF_DEMO, "their sets are none"),
        ("runs", {}, "runs is empty"),
        ("runs", {datetime.date(2026, 11, 27): {}}, "YAML does not read 2026-11-27 as text; put the name into quotes"),
        ("corpora_in_use", [], "add 'demo', the corpus of runs.demo-tiny"),
        ("corpora_in_use", ["demo", "multi30k"], "remove 'multi30k', which no run uses"),
        ("corpora_in_use", ["demo", "demo"], "remove 'demo', which is listed twice"),
        ("runs.demo-tiny.beam", 1, IN_DECODING),
        ("runs.demo-tiny.checkpoints", 3, "checkpoints belongs in `averaging` of a model"),
        ("runs.demo-tiny.max_words", 9, "max_words belongs in `normalise` of a corpus"),
        ("runs.demo-tiny.bootstrap", 9, "bootstrap belongs in `base.scoring`"),
        ("studies.demo.runs.demo-tiny.beam", 1, IN_DECODING),
        ("models.tiny.model.beam", 1, IN_DECODING),
        ("models.tiny.decoding.dropout", 0.1, "dropout belongs in `model` of a model (models.NAME.model) or a run"),
        ("models.tiny.model.threads", 1, "(corpora.NAME.vocabulary), or in `training` of a model (models.NAME.training)"),
        ("corpora.demo.normalise.pieces", 9, "pieces belongs in `vocabulary` of a corpus"),
    ],
)
def test_impossible_values_are_refused(params, place, value, expected):
    *path, key = place.split(".")
    inside(params, tuple(path))[key] = value
    message = refusal(params)
    assert expected in message
    if "belongs" in expected:
        assert message.startswith(f"params.yaml: {place}: ".replace("params.yaml: studies.", "studies.yaml: "))


NAMES = ["../up", "a/b", "a.b", "a;b", "$(x)", "-a", "", "a b", "a@b", 1, pytest.param(16**5000, id="16**5000"), None]
FOLDERS = ["corpora", "downloads", "times", "logs"]  # of work/ and scores/


@pytest.mark.parametrize("name", [*NAMES, *FOLDERS])
def test_names_that_cannot_be_folders_stages_and_words_are_refused(params, name):
    params = small(params)
    refusal({**params, "runs": {name: params["runs"]["demo-tiny"]}})
    if name not in FOLDERS:
        for block in ("corpora", "models", "studies"):
            refusal({**params, block: {**params[block], name: next(iter(params[block].values()))}})


# Less than 1 KB of text with hundreds of millions of values behind aliases
ALIASES = "\n".join(
    ["a0: &a0 {k: v}", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)), "all: *a8"]
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "params.yaml is not in"),
        ("runs: [", "params.yaml cannot be read"),
        (
            "runs: {}\n\nruns: {a: {}}",
            "the key 'runs' is empty in line 1, which is to be removed, because the key occurs again in line 3",
        ),
        ("a: 1\nruns: {a: {}, b: {}, a: {}}", "the key 'a' of line 2 occurs again in line 2, column 22"),
        ("- runs", "is not a mapping"),
        ("", "is not a mapping"),
        ("a:\n  seed: 2001-99-99", "'2001-99-99' is not a valid timestamp in line 2, column 9"),
        pytest.param("a: " + "[" * 100_000 + "]" * 100_000, "nested deeper than 100 levels", id="deep"),
        pytest.param(ALIASES, "it holds more than 100000 values, counting the values behind each alias", id="aliases"),
        pytest.param(f"{ALIASES}\nmore: {{k: *a8, k: *a8}}", "it holds more than 100000 values", id="printed by YAML"),
        pytest.param(ALIASES.replace("[", "{<<: [").replace("]", "]}"), "it holds more than 100000", id="merged"),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(tmp_path, text, expected):
    if text is not None:
        (tmp_path / "params.yaml").write_text(text)
    done = python(tmp_path, "-m", "pipeline.commands.check")
    assert done.returncode == 1
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2001-01-01T25:00:00Z", "is not a valid timestamp"),
        ('!!int "abc"', "'abc' is not a valid int"),
        ('!!int ""', "'' is not a valid int"),
        ('!!float "abc"', "'abc' is not a valid float"),
        ('!!bool "abc"', "'abc' is not a valid bool"),
        ("0b_", "'0b_' is not a valid int"),
        pytest.param("9" * 5000, "9...9", id="digits"),
        pytest.param("0x" + "f" * 5000, "a number of thousands of digits is not possible", id="hexadecimal digits"),
        (str(2**31), "2147483648 is not possible; a whole number of at most 2147483647"),
        ("*all", "cannot be read"),
        ("{[{b: 1}]: 2}", "unhashable"),
        ("!!omap [{b: 1}, {b: 2}]", "a key occurs twice"),
    ],
)
def test_a_value_that_is_none_is_refused_with_its_line(value, expected):
    with pytest.raises(UserError, match=re.escape(expected)) as raised:
        parse(f"base:\n  first: &all\n    steps: {value}\n")
    message = str(raised.value)
    assert message.startswith("params.yaml cannot be read: ") and "\n" not in message and len(message) < 400
    assert "line 3" in message or expected in ("unhashable", "a key occurs twice", "cannot be read")


@pytest.mark.slow
def test_every_whole_number_of_base_that_is_too_large_is_refused_with_its_line():
    """The limit holds only for params.yaml. A count, such as the tokens of a training, may be larger."""
    lines = (ROOT / "params.yaml").read_text(encoding="utf-8").split("\n")
    places = [n for n in range(lines.index("base:"), lines.index("corpora:")) if re.match(r" +\w+: \d+( |$)", lines[n])]
    assert len(places) > 30
    for n in places:
        spoilt = re.sub(r": \d+", f": {-(2**65) if n % 2 else 2**65}", lines[n], count=1)
        with pytest.raises(UserError, match=rf"36893488147419103232 is not possible; .* in line {n + 1}, "):
            parse("\n".join([*lines[:n], spoilt, *lines[n + 1 :]]))


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["score", "train"])
def test_a_stage_refuses_what_it_does_not_use_itself(tmp_path, stage):
    text = (ROOT / "params.yaml").read_text(encoding="utf-8")
    (tmp_path / "params.yaml").write_text(text.replace("    nfc: true", "    nfd: true"), encoding="utf-8")
    options = {
        "score": ("--translations", "t", "--dev", "d", "--test", "e", "--out", "o", "--metrics", "m"),
        "train": ("--data", "d", "--vocabulary", "v", "--out", "o", "--scores", "s", "--times", "t"),
    }
    done = python(tmp_path, "-m", f"pipeline.{stage}", "demo-tiny", *options[stage])
    assert done.returncode == 1
    assert "params.yaml: base.normalise.nfd: unknown key; did you mean 'nfc'?" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == [tmp_path / "params.yaml"]


def test_the_check_needs_nothing_heavy():
    script = "import sys, pipeline.settings.check; print([m for m in sys.modules if '.' not in m])"
    modules = json.loads(python(ROOT, "-c", script).stdout.replace("'", '"'))
    assert not {"torch", "mlflow", "matplotlib", "pyarrow", "sacremoses", "sacrebleu", "sentencepiece"} & set(modules)


# Studies


@pytest.fixture
def text() -> str:
    return (ROOT / "params.yaml").read_text(encoding="utf-8")


SELECTED = ("runs", "corpora_in_use", "sets", "ensembles", "values", "decodings")


def test_selecting_a_study_changes_its_blocks_and_no_other_byte(text):
    selected = study.select(text, "paper")
    before, after = parse(text), parse(selected)
    assert after["runs"] == with_studies(before)["studies"]["paper"]["runs"]
    assert set(after["corpora_in_use"]) == {"wmt14-en-de", "wmt14-en-fr"}
    assert {key: value for key, value in after.items() if key not in SELECTED} == {
        key: value for key, value in before.items() if key not in SELECTED
    }
    head, tail = text[: text.index("\nruns:")], text[text.index("\n# The hardware and its use") :]
    assert selected.startswith(head)
    assert selected.endswith(tail)
    assert study.select(selected, "demo") == text


def test_a_study_selects_its_sets_and_decodings(text, tmp_path):
    own = tmp_path / "studies.yaml"
    own.write_text(
        "mine:\n  runs:\n    demo-tiny: {corpus: demo, model: tiny}\n"
        '  sets:\n    new: {corpus: demo, source: "https://host/a.en", target: "https://host/a.de"}\n'
        "  decodings:\n    beam-1: {model: demo-tiny/average, set: new, beam: 1}\n"
    )
    selected = study.select(text, "mine", own)
    after = parse(selected)
    assert list(after["sets"]) == ["new"] and after["decodings"]["beam-1"]["beam"] == 1
    assert study.select(selected, "demo") == text


@pytest.mark.parametrize(
    ("of_params", "of_studies", "said"),
    [
        ("studies: {}\n", "{}", "params.yaml: studies: unknown block; studies are in studies.yaml"),
        ("", "runs:\n  a b", "studies.yaml: runs: 'a b' is not a mapping"),
        ("", "mine:", "studies.yaml: mine: None is not a mapping"),
        ("", "mine: {runs: [a, b]}", "studies.yaml: mine.runs: ['a', 'b'] is not a mapping"),
        ("", "mine: {desc: [a], runs: {}}", "studies.yaml: mine.desc: ['a'] is not a text"),
        ("", "a: {b: c", "studies.yaml cannot be read"),
        ("", "[]", "studies.yaml is not a mapping\n"),
        ("", "a/b: {runs: {}}", "studies.yaml: 'a/b' is not a valid name"),
    ],
)
def test_wrong_studies_are_named_by_the_check_of_the_user_and_not_by_that_of_a_stage(
    tmp_path, text, of_params, of_studies, said, monkeypatch
):
    (tmp_path / "params.yaml").write_text(text + of_params, encoding="utf-8")
    (tmp_path / "studies.yaml").write_text(of_studies)
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    monkeypatch.delenv("DVC_STAGE", raising=False)
    done = python(tmp_path, "-m", "pipeline.commands.check")
    assert done.returncode == 1 and f"check: {said}" in done.stderr and done.stderr.count("\n") == 1
    monkeypatch.setenv("DVC_STAGE", "train@demo-tiny")
    assert python(tmp_path, "-m", "pipeline.commands.check").returncode == 0


@pytest.mark.slow
def test_every_study_can_be_selected(text):
    for name in with_studies(parse(text))["studies"]:
        check(parse(study.select(text, name)))


RUNS = "runs: {demo-tiny: {corpus: demo, model: tiny}}\n"
RUNS_IN_LINES = (
    "runs:  # mine\n    demo-tiny:\n        corpus: demo\n\n        # why\n        model: tiny\n"
    "    other: {corpus: demo, model: tiny}\n"
)
RUNS_DIVIDED = "runs:\n\n  demo-tiny: {corpus: demo,\n    model: tiny}\n"


@pytest.mark.parametrize(
    "runs", [RUNS, RUNS_IN_LINES, RUNS_DIVIDED, RUNS.replace("{demo", "{\n  demo").replace("}}", "}\n}")]
)
@pytest.mark.parametrize("corpora", ["[demo]\n", "\n  - demo\n", "\n- demo\n", "[\n  demo\n]\n"])
def test_blocks_written_otherwise_are_found(text, runs, corpora):
    plain = "runs:\n  demo-tiny: {corpus: demo, model: tiny}\n\ncorpora_in_use: [demo]\n"
    assert plain in text
    assert study.select(text.replace(plain, f"{runs}\n# between\ncorpora_in_use: {corpora}"), "demo") == text.replace(
        plain, "runs:\n  demo-tiny: {corpus: demo, model: tiny}\n\n# between\ncorpora_in_use: [demo]\n"
    )


def test_the_command_lists_and_selects(tmp_path, text):
    for name in ("params.yaml", "studies.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    listed = python(tmp_path, "-m", "pipeline.commands.study").stdout
    lines = [re.split("  +", line) for line in listed.splitlines()]
    assert ["demo", "1", "selected", "the demonstration: pairs from a grammar"] in lines
    assert ["paper", "22", "Tables 2 and 3 of the paper, on WMT14"] in lines
    refused = python(tmp_path, "-m", "pipeline.commands.study", "papr")
    assert refused.returncode == 1
    assert "did you mean 'paper'?" in refused.stderr
    assert (tmp_path / "params.yaml").read_text(encoding="utf-8") == text
    assert python(tmp_path, "-m", "pipeline.commands.study", "table2").returncode == 0
    assert (tmp_path / "params.yaml").read_text(encoding="utf-8") == study.select(text, "table2")


@pytest.mark.parametrize("module", ["study", "plan"])
def test_a_wrong_setting_of_a_study_is_named_by_its_file(tmp_path, text, module):
    (tmp_path / "params.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "studies.yaml").write_text("mine: {runs: {new: {corpus: demo, model: tiny, dk: 8}}}\n")
    refused = python(tmp_path, "-m", f"pipeline.commands.{module}", "mine")
    assert refused.returncode == 1
    assert f"{module}: studies.yaml: mine.runs.new.dk: unknown key; did you mean 'd_k'?" in refused.stderr


def test_a_linked_params_yaml_stays_a_link_and_one_in_another_encoding_is_refused_in_a_line(tmp_path, text):
    (tmp_path / "shared").mkdir()
    shared = Path(shutil.copy(ROOT / "params.yaml", tmp_path / "shared"))
    shutil.copy(ROOT / "studies.yaml", tmp_path)
    (tmp_path / "params.yaml").symlink_to(shared)
    assert python(tmp_path, "-m", "pipeline.commands.study", "table2").returncode == 0
    assert (tmp_path / "params.yaml").is_symlink()
    assert shared.read_text(encoding="utf-8") == study.select(text, "table2")
    shared.write_bytes("# Größe\n".encode("latin-1") + text.encode())
    refused = python(tmp_path, "-m", "pipeline.commands.study", "demo")
    assert refused.returncode == 1
    assert "params.yaml cannot be read" in refused.stderr and refused.stderr.count("\n") == 1


def test_a_wrong_selection_can_be_put_right_by_selecting_a_study(text):
    wrong = text.replace("demo-tiny: {corpus: demo, model: tiny}\n\ncorp", "demo-tiny: {corpus: dmo}\n\ncorp")
    assert wrong != text
    assert study.select(wrong, "demo") == text
