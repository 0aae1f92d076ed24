"""The translator's Python interface: its inputs, its outputs and the inputs that it refuses."""

import copy
import dataclasses
import gc
import pickle
import re
import shutil
import sys
import threading
import weakref
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.learn_bpe import learn
from pipeline.settings.vocabulary import VocabularyConfig
from tests.support.models import KNOWN, LINES, OLD, TEXT, TRANSLATIONS, model_folder, vocabulary_of
from tests.support.projects import ROOT
from tests.support.refusals import refused
from transformer import Translator
from transformer.alignment import attention_weights_of, links, words_of_given, words_of_source, words_of_target
from transformer.checkpoint import SETTINGS
from transformer.cleaning import cleaner
from transformer.config.decoding import DecodingConfig
from transformer.config.reading import UserError, read
from transformer.config.vocabulary import BOS, EOS
from transformer.decoders.forced import log_probabilities
from transformer.files import read_json, write_json
from transformer.translator import PAPER
from transformer.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return model_folder(tmp_path_factory.mktemp("model") / "average")


@pytest.fixture(scope="module")
def translate(folder) -> Translator:
    return Translator.load(folder, precision="float32")


def test_the_settings_without_any_are_those_of_params_yaml_and_the_machine_s_threads(params, translate, folder):
    assert read(DecodingConfig, params["base"]["decoding"], "base.decoding") == PAPER
    assert translate.config.threads == min(4, torch.get_num_threads())
    assert Translator.load(folder, threads=1).config.threads == 1


def test_loading_and_translating_leave_the_random_numbers_of_the_caller(folder):
    before = torch.get_rng_state()
    Translator.load(folder)(LINES[0])
    assert torch.equal(torch.get_rng_state(), before)


def test_text_in_text_out_and_a_list_in_a_list_out(translate):
    assert translate(LINES) == TRANSLATIONS
    assert [translate(line) for line in LINES] == TRANSLATIONS
    assert translate([]) == [] and translate("") == "" and translate(["", LINES[0], " "]) == ["", TRANSLATIONS[0], ""]


def test_a_decoder_setting_by_keyword_holds_for_the_call_or_for_the_translator(translate, folder):
    greedy = [expected["text"] for expected in KNOWN["greedy"]]
    assert greedy != TRANSLATIONS
    assert translate(LINES, beam=1) == greedy == Translator.load(folder, precision="float32", beam=1)(LINES)
    assert translate.config.beam == 4
    pieces = len(translate.encode(translate.normalise(LINES[:1]))[0])
    assert translate(LINES[0], batch_tokens=4 * pieces) == TRANSLATIONS[0]
    with pytest.raises(UserError, match=f"a batch takes {pieces - 1}"):
        translate(LINES[0], batch_tokens=4 * pieces - 1)


@pytest.mark.filterwarnings("error")
def test_split_translates_each_sentence_and_keeps_line_breaks(translate):
    one, two = translate([f"{LINES[0]}.", f"{LINES[1]}!"])
    text = f"\n{LINES[0]}. {LINES[1]}!\r\n\r\n \n  {LINES[1]}!\u2028{LINES[0]}."
    assert translate(text, split=True) == f"\n{one} {two}\r\n\r\n \n  {two}\u2028{one}"
    assert translate(["", " \u200b", f"{LINES[0]}.\n", "\n\n"], split=True) == ["", " \u200b", f"{one}\n", "\n\n"]
    japanese = dataclasses.replace(
        translate, text_config=dataclasses.replace(translate.text_config, languages=("en", "ja"))
    )
    assert japanese(f"{LINES[0]}. {LINES[1]}!", split=True) == one + two, "no space in the language of the translation"


def test_the_first_text_of_which_a_part_may_be_missing_is_warned_about_once(translate, folder, tmp_path):
    fresh = dataclasses.replace(translate, said=[])
    with pytest.warns(UserWarning, match=r"^line 2 has 2 sentences, .*; split=True translates each$") as said:
        assert len(fresh([LINES[0], "A.\nB", "A. B. C."])) == 3
        fresh("A. B.", n_best=2)
        fresh.using(beam=2)("A. B.")
    assert [each.filename for each in said] == [__file__]
    limited = Path(shutil.copytree(folder, tmp_path / "limited"))
    write_json(limited / SETTINGS, read_json(limited / SETTINGS) | {"max_length": 6})
    expected = r"^line 1 has a sentence of \d+ pieces, and the model was trained on at most 5$"
    for split in (True, False):  # a sentence that no division shortens
        with pytest.warns(UserWarning, match=expected) as said:
            Translator.load(limited)(" ".join(LINES), split=split)
        assert [each.filename for each in said] == [__file__]


def test_a_line_that_is_too_long_is_translated_sentence_by_sentence_on_request(translate):
    long = f"{LINES[0]}. {LINES[1]}."
    few = {"batch_tokens": 4 * (len(translate.encode(translate.normalise([long]))[0]) - 1)}
    parts = translate([f"{LINES[0]}.", f"{LINES[1]}."])
    assert translate([long, LINES[0], ""], split=True, **few) == [" ".join(parts), TRANSLATIONS[0], ""]
    assert translate(long, split=True, **few) == " ".join(parts)
    with refused("line 1 has ", "pieces, and a batch takes ", "split=True"):
        translate(long, **few)
    with refused("line 1 has ", "divide this sentence"):
        translate(" ".join(LINES * 2), **few)
    with refused("split joins translations; it is not possible with n_best"):
        translate(long, split=True, n_best=0)
    with refused("line 3 has a sentence of ", "divide this sentence"):
        translate([LINES[0], "", f"{LINES[0]}. {' '.join(LINES * 2)}"], split=True, **few)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"beem": 3}, "beem: unknown key; did you mean 'beam'?"),
        ({"beam\n" * 100: 3}, "': unknown key; valid keys"),
        ({"beam": "3"}, "beam: '3' is not possible"),
        ({"beam": 0}, "beam: 0 is not possible"),
        ({"precision": "half"}, "precision: 'half' is not possible; one of auto, float32, bfloat16"),
        *(({"device": name}, f"device: {name!r} is not possible") for name in ("tpu", "mps", None, "cuda:x", "cuda:99")),
    ],
)
def test_an_invalid_setting_is_refused(translate, folder, settings, said):
    with refused(said):
        Translator.load(folder, **settings)
    if "device" not in settings:
        with refused(said):
            translate("the cat", **settings)


def test_a_folder_that_is_none_or_is_damaged_is_refused(folder, tmp_path):
    with refused("nowhere is not a folder; a model folder"):
        Translator.load(tmp_path / "nowhere")
    damaged = Path(shutil.copytree(folder, tmp_path / "damaged"))
    write_json(damaged / "text.json", {**TEXT, "languages": "en"})
    with refused("text.json.languages: 'en' is not possible"):
        Translator.load(damaged)


def test_text_is_normalised_as_the_folder_says(translate, folder, tmp_path):
    assert translate.normalise(["a&amp;b\u00a0 c\u200b", "e\u0301\r", "one\ntwo"]) == ["a&b c", "é", "one two"]
    spaced = LINES[0].replace(" ", "\u2003")
    assert translate(f" {spaced}\r\n") == translate(LINES[0])
    plain = Path(shutil.copytree(OLD / "model", tmp_path / "plain"))
    assert Translator.load(plain).normalise(["a&amp;b  c"]) == ["a&amp;b  c"], "of a folder without text.json"


def test_normalised_punctuation_needs_a_package_and_says_so(translate, monkeypatch):
    pytest.importorskip("sacremoses")
    text = dataclasses.replace(translate.text_config, punctuation=True)
    assert dataclasses.replace(translate, text_config=text).normalise(["“Well”, she said"]) == ['"Well," she said']
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(UserError, match="pip install sacremoses"):
        dataclasses.replace(translate, text_config=text)


def test_n_best_lists_begin_with_the_translation_and_fall_in_score(translate):
    for line, best, hypotheses in zip(LINES, translate(LINES, scores=True), translate(LINES, n_best=3)):
        assert len(hypotheses) == 3
        assert hypotheses[0].text == best.text == translate(line, n_best=1)[0].text
        assert hypotheses[0].score == pytest.approx(best.score, abs=1e-4)
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(hypothesis.target) for hypothesis in hypotheses}) == 3
    expected = [expected["score"] for expected in KNOWN["beam"]]
    assert [best.score for best in translate(LINES, scores=True)] == pytest.approx(expected, abs=1e-3)
    for number in (0, 10**20, 2.5, True):
        with refused(f"n_best: {number} is not possible", "a whole number from 1 to 10,000 is"):
            translate("the cat", n_best=number)


def test_a_translation_begins_with_a_forced_prefix_and_has_its_score(translate):
    best = translate(LINES, scores=True)
    half = [" ".join(each.text.split()[: number % 4]) for number, each in enumerate(best)]
    others = [*half[1:], "die Katze"]  # of other sentences, so the search alone would not begin so
    for prefixes in (half, others):
        found = translate(LINES, prefix=prefixes, n_best=3, alpha=0)
        assert all(each.text.startswith(prefix) for several, prefix in zip(found, prefixes) for each in several)
        sources = translate.encode(translate.normalise(LINES))
        for rank in (0, 1):
            ids = [[translate.vocabulary.processor.PieceToId(piece) for piece in each[rank].target[:-1]] for each in found]
            forced = log_probabilities([translate.model], sources, ids, 4096)
            assert [each[rank].score for each in found] == pytest.approx(forced, rel=1e-4)
    assert translate(LINES, beam=1, prefix=half) != translate(LINES, beam=1, prefix=others)
    greedy = translate(LINES, beam=1)
    for space in (" ", "\n", "\t\u00a0", "\u200b \u00ad"):  # around words and between them
        prefixes = [space.join(["", *text.split()[:2], ""]) for text in greedy]
        assert translate(LINES, beam=1, prefix=prefixes) == greedy
    assert translate(LINES[0], prefix="die&nbsp;Katze") == translate(LINES[0], prefix="die Katze"), "as the training text"
    assert translate(LINES[0], prefix="die Katze " * 60).startswith("die Katze die Katze"), "beyond the limit of length"


def test_a_translation_has_at_least_so_many_pieces(translate):
    for shortest in (1, 9, 99):
        found = translate(LINES, scores=True, min_length=shortest)
        assert all(len(each.target) > shortest for each in found)
    long = [each for each in translate(LINES, scores=True) if len(each.target) > 3]
    assert long and {each.text for each in long} <= set(translate(LINES, min_length=3))


def test_a_pickled_translator_translates_alike(folder):
    other = pickle.loads(pickle.dumps(Translator.load(folder, precision="float32", beam=2)))
    assert other(LINES) == Translator.load(folder, precision="float32", beam=2)(LINES) and other.config.beam == 2
    assert other.normalise(["a\u2003b"]) == Translator.load(folder).normalise(["a\u2003b"])
    assert len({other, copy.copy(other), other}) == 2, "a translator can be a key"


TWO = ["one", "two"]


@pytest.mark.parametrize(
    ("text", "settings", "said"),
    [
        (TWO, {"prefix": ["a"]}, "prefix: ['a'] is not possible; a text, or a list with a text for each line"),
        (TWO, {"prefix": "a\ud800"}, "prefix: 'a\\ud800' is not possible; a text, or"),
        (TWO, {"min_lenght": 3}, "min_lenght: unknown key; did you mean 'min_length'?"),
        (TWO, {"prefix": 3}, "prefix: 3 is not possible"),
        (TWO, {"min_length": True}, "min_length: True is not possible; a whole number from 0 to 4,096"),
        (TWO, {"min_length": -1}, "min_length: -1 is not possible; a whole number from 0 to 4,096"),
        (TWO, {"prefix": ["", "die Ärger"]}, "'die Ärger'] is not possible; characters that the vocabulary has"),
        (TWO, {"prefix": "die " * 5000}, "at most 4,096 pieces are expected"),
        (TWO, {"prefix": "a", "split": True}, "not possible with split"),
        (["one", "one \ud800 two"], {}, "line 2 has half of a surrogate pair"),
        (["one", None], {}, "line 2 is None; text is expected"),
        (None, {}, "None is not possible; a text or a list of texts is expected"),
        (5, {}, "5 is not possible; a text or a list of texts is expected"),
        ({"en": "one"}, {}, "is not possible; a text or a list of texts is expected"),
        (b"one", {}, "b'one' is not possible; a text or a list of texts is expected"),
    ],
)
def test_what_is_no_text_or_no_prefix_or_no_length_is_refused(translate, text, settings, said):
    with refused(said):
        translate(text, **settings)


def test_the_prefixes_of_all_batches_are_counted(translate):
    longest = max(map(len, translate.encode(LINES)))
    each, alone = translate.using(batch_tokens=4 * longest, threads=1), []
    for lines in (*([line] for line in LINES), LINES):
        each.n_best(lines, "x", 1)
        alone.append(each.calls)
    assert alone.pop() == sum(alone) > 4 * len(LINES)


@pytest.mark.parametrize("threads", [1, 2])
def test_no_search_goes_on_after_an_error_of_the_caller(translate, threads):
    lines = [f"{line} {' '.join(LINES[:number])}" for line in LINES for number in range(4)]
    with pytest.raises(ZeroDivisionError) as held:  # holds the frames of the call
        translate.using(batch_tokens=100, threads=threads).n_best(lines, "x", 1, lambda number: number // 0)
    assert held.traceback and not [each.name for each in threading.enumerate() if each.name.startswith("decode")]


def test_settings_of_a_call_copy_no_weights(translate):
    rounded = translate.using(precision="bfloat16")
    assert rounded.decoders[0] is not translate.decoders[0]
    assert translate.using(beam=2).model is translate.model
    again = (rounded.using(beam=2), translate.using(precision="bfloat16"))
    assert all(each.decoders[0] is rounded.decoders[0] for each in again)
    other = copy.deepcopy(translate.model)
    ensemble = dataclasses.replace(rounded, others=[other])
    assert len(ensemble.decoders) == 2 and ensemble.decoders[0] is rounded.decoders[0]
    assert ensemble.decoders[1].embedding.dtype == torch.bfloat16 and len(rounded.decoders) == 1
    gone = weakref.ref(other)
    del ensemble, other
    gc.collect()
    assert gone() is None, "the copies of a model end with it"


def test_attention_is_that_of_the_model_that_reads_source_and_translation(translate):
    hypothesis = translate(LINES[0], attention=True)
    (source,), ids = translate.encode([LINES[0]]), translate.vocabulary.processor.PieceToId(hypothesis.target)
    rows = torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *ids[:-1]]])
    expected = torch.cat(attention_weights_of(translate.model)(*rows)["cross"])
    torch.testing.assert_close(hypothesis.attention, expected)
    assert hypothesis.attention.shape[2:] == (len(hypothesis.target), len(hypothesis.source))
    assert hypothesis == translate(LINES[0], attention=True) != translate(LINES[0], n_best=2, attention=True)[1]
    hypothesis.attention.div_(hypothesis.attention.sum())
    assert hypothesis.attention.sum().item() == pytest.approx(1), "a caller can write into it"


def test_an_alignment_takes_the_layer_at_five_sixths_and_the_mean_of_its_heads():
    """Two words of two pieces each, and EOS on either side. The other layers align in the opposite order."""
    wrong, right = torch.eye(5)[[3, 2, 1, 0, 4]], torch.eye(5)
    heads = torch.stack([0.7 * right, torch.zeros(5, 5)])
    for layers, layer in [(1, 0), (2, 1), (3, 2), (6, 4), (12, 9)]:
        cross = torch.stack([wrong, wrong]).repeat(layers, 1, 1, 1)
        cross[layer] = heads
        assert links(cross, [0, 0, 1, 1], [0, 0, 1, 1]) == [(0, 0), (1, 1)]
    cross[layer, 1] = wrong * 3  # this head outweighs the other
    assert links(cross, [0, 0, 1, 1], [0, 0, 1, 1]) == [(0, 1), (1, 0)]
    assert links(cross, [], []) == links(cross, [0], []) == []
    # no piece is linked to EOS or to a space
    cross = torch.tensor([[[[0.0, 0.1, 0.9], [0.2, 0.1, 0.7], [0.0, 0.0, 1.0]]]])
    assert links(cross, [-1, 0], [0, 1]) == [(0, 0)]


@pytest.fixture(scope="module")
def bytes_vocabulary() -> Vocabulary:
    config = VocabularyConfig(300, "byte_fallback", 0.9999, 0, 0.0, 1, 1, 1)
    return vocabulary_of(learn([b"the cat sees the dog and the bird\n" * 9], config))


WORD = st.text(st.characters(exclude_categories=["Z", "C"], exclude_characters="\u2581"), min_size=1, max_size=8)


@settings(deadline=None)
@given(st.lists(WORD, max_size=8))
def test_every_word_has_its_pieces_and_no_other(bytes_vocabulary, words):
    """SentencePiece encodes and decodes words of any characters. Most of the characters become bytes."""
    (ids,) = bytes_vocabulary.encode([" ".join(words)])
    pieces = bytes_vocabulary.pieces(ids)
    for found in (words_of_source(pieces), words_of_target(bytes_vocabulary, ids)):
        of_word = [[id for id, word in zip(ids, found) if word == number] for number in range(len(words))]
        assert [text.strip(" ") for text in bytes_vocabulary.decode(of_word)] == words
        assert set(found) <= {-1, *range(len(words))}


@pytest.mark.parametrize(
    ("given", "line", "expected"),
    [  # the words that were given of each word of the line
        ("She reads ; he does not .", "She reads; he does not.", [0, 1, 2, 3, 4, 5, 6]),
        ("a\u200b b \u200b c\u200b", "a b c", [0, 1, 3]),
        ("« Viens ! » dit &quot; il &quot;", '"Viens!" dit "il"', [0, 1, 2, 3, 4, 5, 6, 7]),
        ("a\n\tb\u3000c", "a b c", [0, 1, 2]),
        ("10\u00a0000 ä 漢字", "10.000 ä 漢字", [0, 1, 2, 3]),
        ("\u200b", "", []),
    ],
)
def test_words_are_those_that_were_given(bytes_vocabulary, given, line, expected):
    """Words of the vocabulary are letters here, and rare characters are bytes."""
    clean = cleaner(entities=True, nfc=True, punctuation=False, language="en")
    (ids,) = bytes_vocabulary.encode([line])
    pieces = bytes_vocabulary.pieces(ids)
    found = words_of_given(pieces, line, given, lambda text: clean(text + "\n")[:-1])
    assert list(dict.fromkeys(word for word in found if word >= 0)) == expected
    if given == line:
        assert found == words_of_source(pieces)


@pytest.mark.parametrize(
    ("line", "expected"),
    [("\t", []), ("\u00a0\n", []), ("a\u00a0the cat", [0, 1, 2]), ("the\tcat  sees", [0, 1, 2]), ("\u2003a", [0])],
)
def test_words_of_a_line_that_was_not_normalised_are_those_that_were_given(bytes_vocabulary, line, expected):
    pieces = bytes_vocabulary.pieces(bytes_vocabulary.encode([line])[0])
    found = words_of_given(pieces, line, line, lambda word: word)
    assert list(dict.fromkeys(word for word in found if word >= 0)) == expected


def test_a_space_of_several_bytes_begins_no_word(bytes_vocabulary):
    bytes_of = [f"<0x{byte:02X}>" for byte in "\u3000".encode()]
    pieces = ["\u2581the", *bytes_of, "\u2581cat"]
    ids = [bytes_vocabulary.processor.PieceToId(piece) for piece in pieces]
    assert bytes_vocabulary.pieces(ids) == pieces
    assert words_of_target(bytes_vocabulary, ids) == [0, 0, 0, 0, 1]


def test_alignment_on_request(translate):
    hypothesis = translate(LINES[0], alignment=True)
    assert hypothesis.attention is None and translate(LINES[0], scores=True).alignment is None
    sources, targets = zip(*hypothesis.alignment)
    assert set(targets) == set(range(len(hypothesis.text.split())))
    assert set(sources) <= set(range(len(LINES[0].split())))
    assert translate("", alignment=True).alignment == []


def test_the_lines_of_python_in_the_documentation_run(folder):
    (program,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/how-to/use.md").read_text(), re.DOTALL | re.MULTILINE)
    assert "models/demo-tiny/average" in program
    known = program.replace('"Er"', repr(LINES[0].split()[0]))  # the stored vocabulary has no capital letter
    exec(known.replace("models/demo-tiny/average", str(folder)), names := {})
    assert names["best"].attention.shape[2:] == (len(names["best"].target), len(names["best"].source))
