"""The commands translate and evaluate: lines in, lines out, and one line for each error."""

import gzip
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from pipeline.commands import translate
from pipeline.running import models, stage
from pipeline.settings.params import PARAMS
from tests.support import in_process
from tests.support.models import LINES, OLD, TRANSLATIONS, model_folder
from tests.support.projects import ROOT
from transformer.checkpoint import SETTINGS, WEIGHTS, read_tensors, write_tensors
from transformer.translator import Translator

COMMAND = [sys.executable, "-m", "pipeline.commands.translate"]
SENTENCE, TRANSLATION = LINES[0], TRANSLATIONS[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return model_folder(tmp_path_factory.mktemp("model") / "average")


@pytest.fixture
def shell(folder, tmp_path, monkeypatch, capfdbinary):
    """A function that translates bytes of standard input. It returns the exit status, the output and the errors."""

    def run(text: bytes, *flags: str, model: str = str(folder)) -> tuple[int | None, bytes, str]:
        (tmp_path / "input").write_bytes(text)
        monkeypatch.setattr(sys, "argv", ["translate", model, *flags])
        with open(tmp_path / "input") as file:
            monkeypatch.setattr(sys, "stdin", file)
            with pytest.raises(SystemExit) as ended:
                stage.run(translate.main, translate.parser(), checked=False)
        out, err = capfdbinary.readouterr()
        return ended.value.code, out, err.decode()

    return run


def refused(result: tuple[int | None, bytes, str], message: str, lines: int) -> None:
    """Assert that the command wrote TRANSLATION `lines` times and one error line, and ended with status 1."""
    status, out, err = result
    assert status == 1 and err.startswith("translate: ") and err.count("\n") == 1, err
    assert message in err
    assert out == f"{TRANSLATION}\n".encode() * lines


@pytest.mark.parametrize("most", [1, 5, 1024])
@pytest.mark.parametrize("end", ["\n", ""])
def test_lines_keep_their_order_in_blocks_of_any_size_and_an_empty_line_stays_one(shell, monkeypatch, most, end):
    monkeypatch.setattr(translate, "BLOCK", most)
    assert shell(b"") == (None, b"", "")
    text = "\n".join(["", *LINES, " \u200b", *reversed(LINES)]) + end
    expected = ["", *TRANSLATIONS, "", *reversed(TRANSLATIONS), ""]
    assert shell(text.encode()) == (None, "\n".join(expected).encode(), "")


def test_columns(shell, monkeypatch):
    status, out, err = shell(f"{SENTENCE}\n\n".encode(), "--n-best", "2", "--scores", "--alignment")
    rows = [line.split("\t") for line in out.decode().split("\n")]
    assert (status, err) == (None, "")
    assert [row[0] for row in rows] == ["1", "1", "2", ""]
    assert rows[0][2] == TRANSLATION and rows[2][2:] == ["", ""]
    monkeypatch.setattr(translate, "BLOCK", 1)
    assert re.findall(r"^\d+", shell(f"{SENTENCE}\n\n".encode(), "--n-best", "1")[1].decode(), re.MULTILINE) == ["1", "2"]
    assert float(rows[0][1]) == pytest.approx(-0.0785, abs=2e-3) and float(rows[0][1]) > float(rows[1][1])
    pairs = [tuple(map(int, link.split("-"))) for link in rows[0][3].split(" ")]
    assert {target for _, target in pairs} == set(range(len(TRANSLATION.split())))
    assert shell(f"{SENTENCE}\n".encode(), "--alignment")[1].decode() == f"{TRANSLATION}\t{rows[0][3]}\n"


def test_a_byte_order_mark_is_no_text_and_another_form_is_named(shell):
    assert shell(f"\ufeff{SENTENCE}\n".encode()) == (None, f"{TRANSLATION}\n".encode(), "")
    for data, said in {
        gzip.compress(b"x" * 99): "is compressed; unpack it",
        lzma.compress(b"x" * 99): "is compressed; unpack it",
        "x".encode("utf-16"): "iconv -f utf-16",
        b"PK\x03\x04\0": "a zip file",
    }.items():
        refused(shell(data), said, 0)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("the c@@ at sat", "marks of pieces"),
        ("the cat\tdie Katze", "standard input is a table with tabs; its lines"),
        ('{"en": "the cat"}', "standard input is a JSON file; its lines"),
        ('<seg id="1">the cat</seg>', "standard input is an .sgm file; its lines"),
        ('<a>the "cat" | sat', ""),
    ],
)
def test_lines_in_pieces_or_of_another_form_are_translated_with_a_warning(shell, line, said):
    status, out, err = shell(f"{line}\n".encode() * 3)
    assert (status, out.count(b"\n")) == (None, 3) and said in err and err.count("\n") == bool(said)


@pytest.mark.parametrize("most", [2, 1024])
def test_a_line_that_is_not_utf_8_is_refused_by_its_number_after_the_lines_before(shell, monkeypatch, most):
    monkeypatch.setattr(translate, "BLOCK", most)
    text = f"{SENTENCE}\n".encode() * 3
    refused(shell(text + b"the c\xe4t\n" + text), "line 4, byte 6 (0xe4) is not UTF-8", 3)


def test_a_long_line_is_refused_by_its_number_or_split_at_the_ends_of_sentences(shell):
    long = " ".join([SENTENCE + "."] * 1200).encode()
    text = f"{SENTENCE}\n".encode() * 2
    refused(shell(text + long + b"\n" + text), "line 3 has", 2)
    _, expected, _ = shell(f"{SENTENCE}.\n".encode())
    status, out, err = shell(long + b"\n" + text, "--split")
    assert (status, err) == (None, "")
    assert out == b" ".join([expected[:-1]] * 1200) + b"\n" + f"{TRANSLATION}\n".encode() * 2
    refused(shell(text + b"the cat " * 3600, "--split"), "line 3 has a sentence of", 2)


def test_a_line_of_which_a_part_may_be_missing_is_named_once_with_the_remedy(shell, folder, monkeypatch):
    """Lines end with CRLF. In blocks of one line, too."""
    monkeypatch.setattr(translate, "BLOCK", 1)
    text = f"{SENTENCE}\r\n\r\n{SENTENCE}. Another!\r\nNo! Yes.\r\n".encode()
    status, whole, err = shell(text)
    assert (status, whole.count(b"\n")) == (None, 4) and b"\r" not in whole
    assert err.startswith("translate: line 3 has 2 sentences") and "--split" in err and err.count("\n") == 1
    parts = Translator.load(folder)([f"{SENTENCE}.", "Another!", "No!", "Yes."])
    assert shell(text, "--split") == (None, "{}\n\n{} {}\n{} {}\n".format(TRANSLATION, *parts).encode(), "")


def test_a_file_without_line_breaks_is_refused(shell):
    text = f"{SENTENCE}\n".encode()
    refused(shell(text + b"a" * 10_000_000), "line 2 has no line break in 1,048,576 bytes", 1)
    refused(shell(text + b"a" * 1_000_000 + b"\n"), "line 2 has 1,000,001 pieces", 1)


def test_a_model_that_is_not_there(shell, here):
    PARAMS.write_bytes((ROOT / PARAMS).read_bytes())
    refused(shell(b"", model="none"), "'none' is not a run of params.yaml (demo-tiny) and not a model folder", 0)
    (Path("models/none/average") / WEIGHTS).parent.mkdir(parents=True)
    for name in (WEIGHTS, SETTINGS):
        (Path("models/none/average") / name).touch()
    Path("demo-tiny").mkdir()
    Path("demo-tiny/model.safetensors").touch()  # as in an export for Marian: it does not hide the run
    refused(shell(b"", model="demo-tiny"), "demo-tiny has no model yet; `make reproduce` trains it", 0)
    refused(shell(b"", model="none"), "and not a model folder; its model is models/none/average", 0)


def test_flags_that_exclude_each_other_or_ask_for_nothing(shell):
    for flags in (["--scores"], ["--alignment"], ["--n-best", "1"]):
        refused(shell(b"", "--split", *flags), "--split joins translations", 0)
    refused(shell(f"{SENTENCE}\n".encode(), "--n-best", "0"), "n_best: 0 is not possible", 0)


def test_an_interrupted_translation_is_not_a_whole_one(shell, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(translate, "work", interrupted)
    assert shell(b"") == (130, b"", "")


def test_a_run_translates_with_its_decoding_settings_on_the_device_of_params_yaml(folder, here, monkeypatch):
    shutil.copytree(folder, here / "models/demo-tiny/average")
    before, quick, after = (ROOT / PARAMS).read_text(encoding="utf-8").partition("\n  quick:")
    after = re.sub(r"decoding: \{.*\}", "decoding: {beam: 3, alpha: 1.5}", after, count=1)
    (here / PARAMS).write_text((before + quick + after).replace("device: auto", "device: cpu"), encoding="utf-8")
    monkeypatch.setattr(Translator, "load", lambda folder, **settings: (folder, settings))
    of_run, settings = models.translator_of("demo-tiny")
    assert (of_run, settings["device"], settings["beam"], settings["alpha"]) == (
        Path("models/demo-tiny/average"),
        "cpu",
        3,
        1.5,
    )
    assert models.translator_of(str(folder)) == (folder, {}), "those of the paper"


def test_a_model_folder_of_earlier_code_says_that_it_does_not_normalise(shell):
    status, out, err = shell(f"{SENTENCE}\n".encode(), model=str(OLD / "model"))
    assert (status, out) == (None, f"{TRANSLATION}\n".encode())
    assert "no text.json" in err and err.count("\n") == 1


def test_a_translation_never_holds_a_line_break(shell, monkeypatch):
    monkeypatch.setattr("transformer.vocabulary.Vocabulary.decode", lambda self, ids: ["a\nb\r\nc\td"] * len(ids))
    assert shell(f"{SENTENCE}\n".encode()) == (None, b"a b  c\td\n", "")
    assert shell(f"{SENTENCE}\n".encode(), "--n-best", "1") == (None, b"1\ta b  c d\n", "")


@pytest.mark.slow
def test_a_line_is_out_before_the_next_one_is_in_and_a_closed_pipe_ends_it(folder):
    """Also if standard error is closed. The signal ends the command before it could say anything."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "preexec_fn": lambda: os.close(2)}
    with subprocess.Popen([*COMMAND, str(folder)], cwd=ROOT, **streams) as child:
        for line, translation in zip(LINES, TRANSLATIONS):
            child.stdin.write(f"{line}\n".encode())
            child.stdin.flush()
            assert child.stdout.readline() == f"{translation}\n".encode()
        child.stdout.close()
        child.stdin.write(f"{SENTENCE}\n".encode())
        child.stdin.close()
        assert child.wait() == -signal.SIGPIPE


def test_a_step_names_a_checkpoint_beside_the_average(shell, folder):
    checkpoints = folder.parent / "checkpoints"
    refused(shell(b"", "--step", "3"), f"{folder} has none beside it", 0)
    tensors, _ = read_tensors(folder / WEIGHTS)
    other = {name: tensor.flip(0) if name == "embedding" else tensor for name, tensor in tensors.items()}
    for step, weights in ((3, tensors), (7, other)):
        write_tensors(checkpoints / f"step-{step:08d}.safetensors", weights, {"step": step})
    shutil.copy(folder / SETTINGS, checkpoints)
    text = "".join(f"{line}\n" for line in LINES).encode()
    average = shell(text)
    assert shell(text, "--step", "3") == average != shell(text, "--step", "7")
    assert models.translator_of(str(folder), 7).description == {"step": 7}
    refused(shell(text, "--step", "8"), "has no checkpoint of step 8; there is 3, 7", 0)


@pytest.mark.slow
def test_make_translates_text_with_any_characters(folder):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    strange = """it's "a" `cat` \\ %s for $100 $(x)"""
    make = ["make", "--silent", "translate", "INSTALLED=", f"RUN={folder}", f"TEXT={strange}"]
    given = subprocess.run(make, check=True, capture_output=True, text=True, cwd=ROOT, env=environment).stdout
    assert given == Translator.load(folder)(strange) + "\n"


@pytest.mark.slow
def test_evaluate_prints_every_measure_with_its_signature_and_keeps_the_translations(folder, tmp_path):
    references = [*TRANSLATIONS[:-1], "die Katze schläft"]
    for name, lines in (("source", [line.replace(" ", "\u2003") for line in LINES]), ("reference", references)):
        marked = "".join(f"{line}\n" for line in lines).encode("utf-8-sig" if name == "reference" else "utf-16")
        (tmp_path / name).write_bytes(gzip.compress(marked))
    files = [str(tmp_path / name) for name in ("source", "reference")]

    def evaluated(*options: str) -> tuple[int, str, str]:
        with in_process.inside(ROOT):
            return in_process.started(["pipeline.commands.evaluate", str(folder), *files, *options])

    status, printed, _ = evaluated("--output", str(tmp_path / "kept"))
    assert status == 0 and (tmp_path / "kept").read_text(encoding="utf-8") == "".join(f"{line}\n" for line in TRANSLATIONS)
    assert f"{len(LINES)} pairs\n" in printed
    (tmp_path / "source").write_text("".join(f"{line}. {line}!\r\n" for line in LINES))
    assert "line 1 has 2 sentences" in evaluated("--output", str(tmp_path / "kept"))[2]
    assert "sentences" not in evaluated("--split", "--output", str(tmp_path / "kept"))[2]
    expected = Translator.load(folder)([f"{line}. {line}!" for line in LINES], split=True)
    assert (tmp_path / "kept").read_text(encoding="utf-8").split("\n") == [*expected, ""]
    assert f"\nbleu-13a  {BLEU().corpus_score(TRANSLATIONS, [references]).score:.2f} " in re.sub(" {2,}", "  ", printed)
    assert "checkpoints has no checkpoint of step 9" in evaluated("--step", "9")[2]
    said = evaluated("--output", str(tmp_path))[2]
    assert said == f"evaluate: --output: {tmp_path} is not a regular file; the path of a file is expected\n"
    (tmp_path / "reference").write_text("\n" * 2 + "one\n" * (len(LINES) - 2))
    assert "2 segments without a reference" in evaluated("--split")[2]
    (tmp_path / "reference").write_text("one\n")
    status, _, said = evaluated()
    assert status == 1 and said.count("\n") == 1 and f"{len(LINES)} lines and {tmp_path / 'reference'} has 1" in said
