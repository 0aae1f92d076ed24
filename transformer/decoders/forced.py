"""Forced decoding: the log-probability of given translations.

Shapes: B pairs, S source positions, T target positions, V vocabulary.
"""

from collections.abc import Sequence

import torch

from transformer.config.vocabulary import BOS, EOS, PAD
from transformer.decoders.steps import mean_of, next_logits
from transformer.decoding import batches_by_length
from transformer.layout import pad
from transformer.memory import enough_memory
from transformer.model import Transformer

Ids = Sequence[Sequence[int]]
SHARE = 4  # batches have batch_tokens / SHARE tokens: logits of whole sentences take more memory than those of a step


@torch.inference_mode()
def log_probabilities(
    models: Sequence[Transformer], sources: Ids, targets: Ids, batch_tokens: int, empty: bool = False
) -> list[float]:
    """log p(target, EOS | source) of each pair of ids without BOS and EOS, as the searches compute it.

    Several models are an ensemble. A pair with an empty source is scored only if `empty`; else its log-probability is 0,
    because such a source is not translated. `batch_tokens` is that of decoding. Raises UserError if memory runs out.
    """
    results = [0.0] * len(sources)
    lengths = [max(map(len, pair)) + 1 if pair[0] or empty else 0 for pair in zip(sources, targets)]  # 0: in no batch
    with enough_memory("in scoring translations", "lower decoding.batch_tokens"):
        for numbers in batches_by_length(lengths, batch_tokens // SHARE):
            found = of_batch(models, [sources[number] for number in numbers], [targets[number] for number in numbers])
            for number, score in zip(numbers, found):
                results[number] = score
    return results


def of_batch(models: Sequence[Transformer], sources: Ids, targets: Ids) -> list[float]:
    device = models[0].embedding.device
    source_BS = pad([[*source, EOS] for source in sources]).to(device)
    given_BT = pad([[BOS, *target] for target in targets]).to(device)
    wanted_BT = pad([[*target, EOS] for target in targets]).to(device)
    logits_BTV = next_logits(mean_of([model(source_BS, given_BT) for model in models]))
    total_BT = logits_BTV.logsumexp(-1)
    wanted_logit_BT = logits_BTV.gather(2, wanted_BT[..., None])[..., 0]
    return torch.where(wanted_BT == PAD, 0.0, wanted_logit_BT - total_BT).sum(1).tolist()
