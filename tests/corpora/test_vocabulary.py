import dataclasses
import io
import random
import re

import numpy as np
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from pipeline.learn_bpe import learn
from pipeline.settings.vocabulary import VocabularyConfig
from pipeline.text.words import WordTable
from tests.support.models import vocabulary_of
from tests.support.projects import HYPOTHESES, REFERENCES
from tests.support.refusals import refused
from transformer.cleaning import cleaner
from transformer.config.reading import UserError
from transformer.config.vocabulary import BOS, EOS, PAD, UNK
from transformer.vocabulary import Vocabulary

LINES = [*HYPOTHESES, *REFERENCES]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
CONFIG = VocabularyConfig(450, "byte_fallback", 0.9999, sample_pairs=0, bpe_dropout=0.0, segmentations=1, seed=1, threads=1)
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>", "<0x41>", "\u2585"]

clean = cleaner(entities=False, nfc=True, punctuation=False, language="de")
# A normalised line: any characters, words of the training text, and the names of special pieces.
WORDS = st.sampled_from([*TEXT.decode().split()[:50], *SPECIAL]) | st.text(st.characters(exclude_categories=["Cs"]))
NORMALISED = st.lists(WORDS).map(lambda words: clean(" ".join(words).replace("\n", " ") + "\n")[:-1])


@pytest.fixture(scope="module")
def vocabulary():
    return vocabulary_of(learn([TEXT], CONFIG))


def trained_by_sentencepiece(sentences, **options) -> bytes:
    model = io.BytesIO()
    settings = {"model_type": "bpe", "vocab_size": 450, "character_coverage": 0.9999, "byte_fallback": True}
    settings |= {"normalization_rule_name": "identity", "pad_id": PAD, "unk_id": UNK, "bos_id": BOS, "eos_id": EOS}
    settings |= {"minloglevel": 2, "sentence_iterator": iter(sentences), "model_writer": model}
    sentencepiece.SentencePieceTrainer.Train(**(settings | options))
    return model.getvalue()


def scored_pieces(model: bytes) -> list[tuple[str, float]]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [(processor.IdToPiece(i), processor.GetScore(i)) for i in range(len(processor))]


def test_special_pieces_have_the_first_ids(vocabulary):
    assert vocabulary.size == 450
    assert vocabulary.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]
    assert vocabulary.decode([BOS, *vocabulary.encode(["Guten Tag"])[0], EOS, PAD]) == "Guten Tag"
    assert vocabulary.decode([[], *vocabulary.encode(["eins", "zwei drei"])]) == ["", "eins", "zwei drei"]


@given(NORMALISED)
def test_normalised_text_comes_back_from_its_ids(vocabulary, line):
    (ids,) = vocabulary.encode([line])
    assert vocabulary.decode(ids) == line.replace("\u2581", " ")  # the character that SentencePiece uses for a space
    assert not {PAD, UNK, BOS, EOS} & set(ids)


@pytest.mark.parametrize("word", SPECIAL)
def test_the_name_of_a_special_piece_is_encoded_as_ordinary_text(word):
    # The vocabulary is learnt from text that contains the name.
    vocabulary = vocabulary_of(learn([TEXT, f"{word} x{word}\n".encode() * 100], CONFIG))
    for line in (word, f"a{word}b", f"{word} {word}"):
        (ids,) = vocabulary.encode([line])
        assert not {PAD, UNK, BOS, EOS} & set(ids)
        assert vocabulary.decode(ids) == line


def test_an_unknown_character_is_one_unknown_piece_if_configured():
    vocabulary = vocabulary_of(learn([TEXT], dataclasses.replace(CONFIG, unknown="unk", pieces=200)))
    (ids,) = vocabulary.encode(["Haus 日"])
    assert ids.count(UNK) == 1
    assert vocabulary.decode(ids) == "Haus  \u2047 "


def test_the_model_is_that_of_sentencepiece_and_depends_on_neither_order_nor_blocks_nor_threads():
    """SentencePiece learns from lines, we from the counts of words."""
    expected = learn([TEXT], CONFIG)
    assert scored_pieces(expected) == scored_pieces(trained_by_sentencepiece(LINES))
    lines = [f"{line}\n".encode() for line in LINES]
    random.Random(1).shuffle(lines)
    assert learn(lines, CONFIG) == expected
    assert learn([TEXT], dataclasses.replace(CONFIG, threads=2)) == expected
    fewer = scored_pieces(learn([TEXT], dataclasses.replace(CONFIG, character_coverage=0.98)))
    assert fewer == scored_pieces(trained_by_sentencepiece(LINES, character_coverage=0.98)) != scored_pieces(expected)


@pytest.mark.parametrize("pieces, limit", [(30000, "at most"), (100, "at least")])
def test_a_size_that_the_text_does_not_allow_is_refused_with_the_nearest_one(pieces, limit):
    with pytest.raises(UserError, match=rf"^pieces: {pieces} is not possible with this text; {limit} \d+ pieces") as error:
        learn([TEXT], dataclasses.replace(CONFIG, pieces=pieces))
    size = int(re.search(rf"{limit} (\d+)", str(error.value))[1])
    assert vocabulary_of(learn([TEXT], dataclasses.replace(CONFIG, pieces=size))).size == size
    for text in ([], [b""], [b" \n\n"], ["字".encode() * 400]):  # a line of Chinese is one word
        with refused("no word"):
            learn(text, CONFIG)


def test_a_file_that_is_no_vocabulary_is_refused_by_name(tmp_path):
    path = tmp_path / "vocabulary.model"
    damaged = dict.fromkeys([b"", b"no model", learn([TEXT], CONFIG)[:-1000]], "is not a SentencePiece model")
    other = trained_by_sentencepiece(LINES, pad_id=-1, unk_id=0, bos_id=1, eos_id=2)
    for content, said in {None: "is missing", **damaged, other: ": pad, unk, bos and eos are (-1, 0, 1, 2)"}.items():
        if content is not None:
            path.write_bytes(content)
        with refused("vocabulary.model", said):
            Vocabulary(path)


def encoded_by(table: WordTable, lines: list[str]) -> list[list[int]]:
    ids, lengths = table.encode("".join(f"{line}\n" for line in lines).encode())
    return [part.tolist() for part in np.split(ids, np.cumsum(lengths)[:-1])]


@given(st.lists(st.lists(NORMALISED, min_size=1, max_size=4), max_size=4), st.sampled_from([1, 5, 1000]))
def test_a_table_of_words_gives_the_ids_of_the_lines(vocabulary, blocks, distinct_words):
    table = WordTable(vocabulary, threads=1, distinct_words=distinct_words)
    for lines in blocks:
        assert encoded_by(table, lines) == vocabulary.encode(lines)


def test_a_table_of_words_refuses_a_vocabulary_whose_pieces_hold_spaces():
    model = trained_by_sentencepiece(["the house of the house of"] * 9, split_by_whitespace=False, vocab_size=285)
    with refused("holds a space"):
        WordTable(vocabulary_of(model), threads=1)
