"""The block `back_translations` of params.yaml, whose entries are corpora for runs."""

from collections.abc import Mapping

from pipeline.extras.back_translation.settings import BackTranslation, decoder
from pipeline.settings.models import require_reverse
from pipeline.settings.params import section
from pipeline.settings.registry import CORPUS, Block
from pipeline.settings.vocabulary import VocabularyConfig
from transformer.config.reading import UserError


def check_back_translation(params: Mapping, name: str, where: str) -> None:
    """Check a back-translation. Its run must translate in the reverse direction; DVC refuses one trained on it."""
    line = params["back_translations"][name]
    decoder(params, name)
    require_reverse(params, line["run"], name, f"{where}.run")
    unknown = section(params, "corpora", line["corpus"], "vocabulary", VocabularyConfig).unknown
    if line["tagged"] and unknown == "unk":
        raise UserError(
            f"{where}.tagged: true is not possible with the vocabulary of {line['corpus']}: with unknown: unk, the "
            "tag, which is the unknown piece, occurs in text; use unknown: byte_fallback or tagged: false"
        )


NAMES = {"corpus": CORPUS, "run": "in runs"}
COUNTS = {"fetch_monolingual": "corpora/{}/monolingual.json", "back_translate": "corpora/{}/back_translate.json"}
BLOCKS = {"back_translations": Block(BackTranslation, NAMES, beside="corpora", counts=COUNTS, check=check_back_translation)}
