"""The command evaluate for translations and references in files, compared with sacreBLEU."""

import gzip
import html
import re
from pathlib import Path

import sacrebleu
from sacrebleu.dataset.wmt_xml import WMTXMLDataset
from sacrebleu.metrics import BLEU, CHRF, TER

from pipeline.commands import evaluate
from tests.support import in_process
from tests.support.projects import HYPOTHESES, REFERENCES, ROOT, with_settings
from tests.support.refusals import refused
from transformer.files import write_lines

OTHERS = [" ".join(reversed(line.split(" ", 3))) for line in REFERENCES]
METRICS = {"bleu-13a": BLEU(), "chrf": CHRF(), "chrf++": CHRF(word_order=2), "ter": TER()}


def evaluated(*words: object, missing: int = 0) -> str:
    """What the command prints. It says on stderr how many segments have no reference, and nothing else."""
    with in_process.inside(ROOT):
        status, printed, said = in_process.started(["pipeline.commands.evaluate", *map(str, words)])
    assert status == 0 and re.findall(r"\d+", said) == [str(int(missing))] * bool(missing), said
    assert said.count("\n") == bool(missing)
    return printed


def written(folder: Path, **texts: list[str]) -> list[Path]:
    for name, lines in texts.items():
        write_lines(folder / name, lines)
    return [folder / name for name in texts]


def test_scores_equal_sacrebleus(tmp_path):
    references = [REFERENCES, OTHERS]
    hypothesis, *files = written(tmp_path, hyp=HYPOTHESES, one=REFERENCES, two=OTHERS)
    segments = "".join(f'<seg id="1"> {html.escape(line)}</seg>\n' for line in HYPOTHESES)
    hypothesis.write_bytes(gzip.compress(f"<doc>\n{segments}</doc>".encode()))
    words = ["--hypothesis", hypothesis, "--language", "de", "--metric", *METRICS]
    words += [word for file in files for word in ("--reference", file)]  # the option once for all is below
    header, _, *rows = evaluated(*words).splitlines()
    assert ": 30 pairs" in header
    for row, (name, metric) in zip(rows, METRICS.items(), strict=True):
        expected = metric.corpus_score(HYPOTHESES, references).score
        assert row.split()[:2] == [name, f"{expected:.2f}"] and "nrefs:2|" in row


def test_a_missing_reference_of_several_is_missing_and_an_only_one_is_empty(tmp_path):
    holes = [line if at % 3 else " " for at, line in enumerate(OTHERS)]
    hypothesis, *files = written(tmp_path, hyp=HYPOTHESES, one=[*REFERENCES[:-1], ""], two=[*holes[:-1], ""])
    several = [[*REFERENCES[:-1], ""], [line.strip() or None for line in holes[:-1]] + [None]]
    for references, chosen in ((several, files), ([several[0]], files[:1])):
        words = ["--hypothesis", hypothesis, "--reference", *chosen, "--language", "de", "--metric", *METRICS]
        for row, metric in zip(evaluated(*words, missing=1).splitlines()[2:], METRICS.values(), strict=True):
            assert row.split()[1] == f"{metric.corpus_score(HYPOTHESES, references).score:.2f}"


XML = """<?xml version='1.0' encoding="utf-8"?><?xml-stylesheet href="wmt.xsl"?>
<!-- made > by --><!DOCTYPE dataset [<!ELEMENT dataset ANY>]><!-- hand -->
<dataset id="made"><collection id="general">{}</collection></dataset>"""
SIDE = '<{} lang="{}"{}><p>{}</p></{}>'


def side(tag: str, lang: str, lines: dict[int, str], author: str = "") -> str:
    by = f' {"translator" if tag == "ref" else "system"}="{author}"' if author else ""
    segments = "".join(f'<seg id="{number}">{line}</seg>\n' for number, line in lines.items())
    return SIDE.format(tag, lang, by, segments, tag)


def numbered(lines: list[str], *left_out: int) -> dict[int, str]:
    return {at: html.escape(line) for at, line in enumerate(lines, 1) if at not in left_out}


def test_wmts_xml_is_read_as_sacrebleu_reads_it(tmp_path):
    sides = side("src", "en", numbered(HYPOTHESES)) + side("ref", "de", numbered(REFERENCES, 3), "A")
    both = sides + side("ref", "de", numbered(OTHERS, 3, 4), "B")
    both += side("hyp", "de", numbered(HYPOTHESES), "one") + side("hyp", "de", numbered(REFERENCES), "two")
    document, suite = '<doc id="a" origlang="en">{}</doc>', '<doc id="b" origlang="en" testsuite="x">{}</doc>'
    path = tmp_path / "wmt#1.xml"
    path.write_text(XML.format(document.format(both) + suite.format(both)), encoding="utf-8")
    fields = WMTXMLDataset._unwrap_wmt21_or_later(str(path))
    references = [[line or None for line in fields[f"ref:{name}"]] for name in "AB"]
    expected = {name: BLEU().corpus_score(fields[name], references).score for name in ("one", "two")}
    words = ["--language", "deu", "--metric", "bleu-13a", "--reference", path, "--hypothesis"]
    for name, score in expected.items():
        for code in ("deu", "de_AT", "DE-de"):
            given = "--language", code, *words[2:], f"{path}#{name}"
            assert evaluated(*given).split("\n")[2].split()[1] == f"{score:.2f}"
    plain, *_ = written(tmp_path, plain=[*HYPOTHESES[:2], *HYPOTHESES[3:]])
    *_, last = evaluated(*words, plain, "--against", f"{path}#two").strip().split("\n")
    assert f"minus {plain}: {expected['two'] - expected['one']:+.2f} " in last and "no p" in last
    for name in "AB":  # B has not translated all segments
        given = *words[:-2], f"{path}#{name}", "--hypothesis", plain
        one = evaluated(*given, missing=name == "B").split("\n")[2].split()[1]
        assert one == f"{sacrebleu.corpus_bleu(fields['one'], [fields[f'ref:{name}']]).score:.2f}"


REFUSED = {  # the arguments but for `--language de`: what is said
    "--reference ref": "--hypothesis, --reference and --language are expected together",
    "run --hypothesis hyp --reference ref": "without a run or its options",
    "--hypothesis short --reference ref": "short has 1 lines and ref has 30",
    "--hypothesis hyp --reference ref --metric chrf+": "did you mean 'chrf++'",
    "--hypothesis hyp --reference wmt#C": "wmt#C: no <ref> in de has this translator; there is A",
    "--hypothesis hyp#one --reference ref": "hyp#one is missing, and hyp is no XML of WMT",
    "--hypothesis hyp --reference wmt --language fr": "no <ref> in fr has this translator; there is none; those out",
    "--hypothesis hyp --reference wmt --language fr-CA": "and the file has de",
    "--hypothesis hyp --reference twice": "twice: a document has two <ref> of one translator; each needs its own name",
    "--hypothesis wmt --reference wmt": "not wmt#one, wmt#two; FILE#SYSTEM",
    "--hypothesis wmt#two --reference wmt": "wmt#two has no translation of segment 2 of the set",
    "--hypothesis hyp --reference cut": "cut is damaged",
    "--hypothesis hyp --reference ref --encoding utf-9": "--encoding: 'utf-9' is not possible; the name of an",
    "--hypothesis hyp --reference ansi": "give `evaluate` --encoding cp",
    "--hypothesis a.sgm --reference b.sgm": "a.sgm and b.sgm have different documents",
    "--hypothesis a.sgm --reference a.sgm b.sgm": "a.sgm and b.sgm have different documents",
    "--hypothesis a.sgm --reference c.sgm": "a.sgm and c.sgm have different documents or segments",
    "--hypothesis b.sgm --reference wmt#A": "b.sgm and wmt#A have different documents",
}


def test_what_cannot_be_scored_is_refused(here):
    written(here, hyp=HYPOTHESES, ref=REFERENCES, short=["one"])
    made = side("ref", "de", {1: "a", 2: "b"}, "A") + side("hyp", "de", {1: "a", 2: "b"}, "one")
    content = XML.format(f'<doc id="a">{made + side("hyp", "de", {1: "a"}, "two")}</doc>')
    Path("ansi").write_bytes("Er sagte: „Ja“ – und ging.\n".encode("cp1252") * 30)
    documents = [f'<doc docid="{name}"><seg id="1">{name}</seg></doc>' for name in "ab"]
    sgm = [f"<refset>{first}{second}</refset>" for first, second in (documents, documents[::-1])]
    more = [("c.sgm", sgm[0].replace('id="1">b', 'id="2">b'))]
    twice = XML.format(f'<doc id="a">{side("ref", "de", {1: "a"}) * 2}</doc>')
    for name, text in (
        ("wmt", content),
        ("twice", twice),
        ("cut", content[:-9]),
        ("a.sgm", sgm[0]),
        ("b.sgm", sgm[1]),
        *more,
    ):
        Path(name).write_text(text)
    with_settings(here)
    for words, said in REFUSED.items():
        with refused(said):
            evaluate.main(evaluate.parser().parse_args(["--language", "de", *words.split()]))
