"""The traced beam search equals the search of `translate` and continues a forced prefix."""

import dataclasses

import numpy as np
import pytest
import torch

from pipeline.extras.serving.tracing import Trace
from transformer.config.reading import UserError
from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoding import translate
from transformer.layout import pad
from transformer.model import Transformer

PIECES = 60


@pytest.fixture
def model(settings):
    """A model with random weights. The enlarged embedding of EOS makes its sentences end."""
    torch.manual_seed(3)
    model = Transformer(settings(), PIECES).eval()
    with torch.no_grad():
        model.embedding[EOS] *= 1.5
        model.embedding *= 2
    return model


@pytest.fixture
def sources():
    random = np.random.default_rng(1)
    return [random.integers(4, PIECES, length).tolist() for length in random.integers(1, 12, 20)]


def log_probs(model, source, ids):
    """The log-probabilities of all pieces after BOS and each of `ids`. PAD and BOS are impossible."""
    logits = model(pad([[*source, EOS]]), pad([[BOS, *ids]]))[0].detach()
    logits[:, [PAD, BOS]] = float("-inf")
    return logits.log_softmax(-1)


def config(decoding_settings, **changes):
    return decoding_settings(extra_length=12, precision="float32", threads=1, batch_tokens=4096, **changes)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"beam": 1}, {"alpha": 0.0}, {"penalty": "power"}, {"beam": 30}], ids=str)
def test_the_traced_search_is_that_of_translate(model, sources, decoding_settings, changes):
    settings = config(decoding_settings, **changes)
    for source in sources[:8]:
        steps = list(Trace(model, source, settings).steps())
        assert [steps[-1].translation] == translate(model, [source], settings)
        assert all(step.translation is None for step in steps[:-1])


def test_the_tree_holds_the_translation_with_the_probabilities_of_the_model(model, sources, decoding_settings):
    settings, ended = config(decoding_settings), 0
    for source in sources[:8]:
        steps = list(Trace(model, source, settings).steps())
        hypotheses, branches = {(): 0.0}, [((), "kept")]
        for step in steps:
            grown = []
            for candidate in step.candidates:
                before, fate = branches[candidate.parent]
                assert fate == "kept"
                ids = (*before, candidate.token)
                log_prob = hypotheses[before] + np.log(candidate.probability)
                assert candidate.log_prob == pytest.approx(log_prob, abs=1e-4)
                hypotheses[ids] = candidate.log_prob
                grown.append((ids, candidate.fate))
            assert sum(fate == "kept" for _, fate in grown) == settings.beam
            ends = [fate == "finished" for ids, fate in grown if ids[-1] == EOS]
            assert ends == [place < settings.beam for place, (ids, _) in enumerate(grown) if ids[-1] == EOS]
            branches = grown
        ids = steps[-1].translation.ids
        whole = (*ids, EOS) if (*ids, EOS) in hypotheses else tuple(ids)
        ended += whole[-1] == EOS
        assert whole[-1] != EOS or [token for token in steps[-1].leader if token not in (PAD, EOS)] == ids
        expected = log_probs(model, source, whole[:-1])[range(len(whole)), list(whole)].sum()
        assert hypotheses[whole] == pytest.approx(expected.item(), abs=1e-4)
    assert ended > 0


def test_alternatives_are_the_best_tokens_of_each_position(model, sources, decoding_settings):
    settings, source = config(decoding_settings), sources[0]
    trace = Trace(model, source, settings)
    *_, last = trace.steps()
    ids = last.translation.ids
    found = trace.alternatives(ids)
    probabilities, tokens = log_probs(model, source, ids)[: len(found)].exp().topk(8)
    assert len(found) >= len(ids)
    assert [[token for token, _ in position] for position in found] == tokens.tolist()
    given = torch.tensor([[probability for _, probability in position] for position in found])
    torch.testing.assert_close(given, probabilities, atol=1e-5, rtol=1e-4)


@pytest.mark.slow
def test_a_forced_prefix_begins_the_translation_and_the_search_goes_on(model, sources, decoding_settings):
    settings = config(decoding_settings, beam=1)
    for source in sources[:3]:
        (free,) = translate(model, [source], settings)
        for length in range(1, len(free.ids), 3):
            *_, last = Trace(model, source, settings, free.ids[:length]).steps()
            assert last.translation.ids == free.ids
            assert last.translation.score == pytest.approx(free.score, abs=1e-4)
        other = [token for token in (7, 8) if token not in free.ids[:1]][:1]
        *_, last = Trace(model, source, settings, other).steps()
        assert last.translation.ids[:1] == other


def test_a_prefix_that_ends_is_the_translation(model, sources, decoding_settings):
    settings = config(decoding_settings)
    *_, last = Trace(model, sources[0], settings, [7, 8, EOS]).steps()
    assert last.translation.ids == [7, 8]
    total = log_probs(model, sources[0], [7, 8])[range(3), [7, 8, EOS]].sum().item()
    assert last.translation.score == pytest.approx(total / ((5 + 3) / 6) ** settings.alpha, abs=1e-5)
    assert [candidate.fate for candidate in last.candidates if candidate.token == EOS] == ["finished"]


def test_no_translation_ends_within_a_forced_prefix(model, sources, decoding_settings):
    """With all pieces among the candidates, EOS is one at each step."""
    settings, prefix = config(decoding_settings, beam=PIECES), [7, 8, 9]
    for step, _ in zip(Trace(model, sources[0], settings, prefix).steps(), prefix):
        (ending,) = [candidate for candidate in step.candidates if candidate.token == EOS]
        assert ending.fate == "dropped"
        assert not {PAD, BOS} & {candidate.token for candidate in step.candidates}, "which are not possible"


def test_a_prefix_without_room_for_a_token_is_refused(model, decoding_settings):
    settings = dataclasses.replace(config(decoding_settings), extra_length=2)
    with pytest.raises(UserError, match="a prefix of 4 pieces; at most 3 are possible"):
        Trace(model, [5, 6], settings, [7, 7, 7, 7])
    trace = Trace(model, [5, 6], settings, [7, 7, 7, EOS])
    *_, last = trace.steps()
    assert last.translation.ids == [7, 7, 7]
    assert [len(trace.alternatives([7] * length)) for length in (2, 3, 4)] == [3, 4, 4], "nothing follows the last place"
