"""The words of Moses' scripts in any language, by sacremoses, with the rules of tokenizer.perl that it lacks."""

import functools
import re

import regex  # knows classes of Unicode

from pipeline.settings.languages import language_of

NAMES = {"tet": "tdt"}  # Tetum in the scripts
NUMBERED = " #NUMERIC_ONLY#"  # marks an abbreviation only before a number
# What sacremoses finds in the lists of abbreviations and the script does not: a space follows, or it stands there twice
UNUSED = {"it": ["Amn", "Arch", "all", "es"], "es": ["Fil", "gr"], "nl": ["Nrs"], "sk": ["Pf"], "sv": ["Ö"]}
UNUSED |= {name: ["ভি"] for name in ("as", "bn", "mni")} | {"ml": ["പി"], "is": [f"no{NUMBERED}"]}
WITHIN = {"fi": ":", "sv": ":", "ca": "·Â"}  # also in words; the script takes the two bytes of · for characters
BEFORE_SMALL = {"fi": ":", "sv": ":", "tdt": "'"}  # in words only before a small letter
APOSTROPHES = {"ga": 4, "ca": 4, "so": 3, "tdt": 3}  # how many rules of French they have; the fourth splits words


@functools.cache
def scripts(language: str):
    """The scripts of sacremoses. A language without a list of abbreviations uses the English list, as in Moses."""
    import sacremoses  # takes a second

    name = NAMES.get(language_of(language), language_of(language))
    made = sacremoses.MosesTokenizer(name)
    prefixes = [prefix for prefix in made.NONBREAKING_PREFIXES if prefix not in UNUSED.get(name, ())]
    made.NONBREAKING_PREFIXES = prefixes + ([f"Nu{NUMBERED}"] if name == "tdt" else [])
    made.NUMERIC_ONLY_PREFIXES = [each.removesuffix(NUMBERED) for each in made.NONBREAKING_PREFIXES if NUMBERED in each]
    made.islower, made.isanyalpha = regex.compile(r"\p{Lower}+").fullmatch, regex.compile(r"\p{Alpha}").search
    mark = rf"|{BEFORE_SMALL[name]}(?!\p{{Ll}})" if name in BEFORE_SMALL else ""
    made.PAD_NOT_ISALNUM = regex.compile(rf"([^\p{{Alnum}}\s.'`,{WITHIN.get(name, '')}-]{mark})"), r" \1 "
    if rules := APOSTROPHES.get(name):
        made.lang, made.FR_IT_SPECIFIC_APOSTROPHE = "fr", made.FR_IT_SPECIFIC_APOSTROPHE[:rules]
    return made, sacremoses.MosesPunctNormalizer().replace_unicode_punct


def replace_unicode_punctuation(line: str) -> str:
    """The output of replace-unicode-punctuation.perl. “ ” ’ and … become ASCII. The quotes „ ‚ ‘ « and » stay."""
    return scripts("en")[1](line)


def tokenise(line: str, language: str) -> str:
    """The output of Moses' tokenizer.perl -q -l `language`, any code: hyphens stay, special characters are escaped."""
    tokens = scripts(language)[0].tokenize(line, return_str=True)
    # The current script splits off the last full stop even after an abbreviation ("at 10 p.m."); sacremoses is older.
    return re.sub(r"(?<=[^ .])\.$", " .", tokens)
