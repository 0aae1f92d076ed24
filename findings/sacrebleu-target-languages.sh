#!/usr/bin/env bash
# Expected: `sacrebleu -l en-zh` takes the tokeniser for Chinese, so other codes of Chinese do as well, or are refused.
# Happens: only zh is known. With zho, cmn, zh_Hans (as in FLORES) or ZH, the tokeniser is 13a without a word, and a sentence without
#   spaces is one token: BLEU is 0 where it is 60.5. en-zh-CN works, because a second hyphen ends the code. The same holds for
#   BLEU(trg_lang=...), and for ja and ko: BLEU(trg_lang="ja") asks for MeCab, trg_lang="jpn" counts with 13a.
# Versions: sacrebleu 2.6.0. Date: 2026-11-29.
# Source: https://github.com/mjpost/sacrebleu/issues/22 (the tokeniser follows from the language) and _TOKENIZER_MAP in
#   sacrebleu/metrics/bleu.py.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q sacrebleu==2.6.0
venv/bin/pip list 2>/dev/null | grep -i '^sacrebleu '

export PYTHONUTF8=1
printf '裁缝补好了外套。\n船长昨天去了港口。\n' > output
printf '裁缝补好了裤子。\n船长今天去了港口。\n' > reference
found=
for code in zh zh-CN zho cmn zh_Hans ZH; do
  line=$(venv/bin/sacrebleu reference -i output -l "en-$code" -f text | grep BLEU)
  echo "-l en-$code: ${line%% (*}"
  [[ $line =~ tok:([a-z0-9]+) ]] && found+="$code:${BASH_REMATCH[1]} "
done
[ "$found" = "zh:zh zh-CN:zh zho:13a cmn:13a zh_Hans:13a ZH:13a " ] || { echo "changed: other codes select the tokeniser"; exit 1; }
venv/bin/python - <<'PYTHON'
import sys

from sacrebleu.metrics import BLEU

print("trg_lang='jpn':", BLEU(trg_lang="jpn").tokenizer.signature())
try:
    BLEU(trg_lang="ja")
except RuntimeError:
    print("trg_lang='ja': asks for MeCab")
else:
    sys.exit("changed: trg_lang='ja' asks for no MeCab")
PYTHON
