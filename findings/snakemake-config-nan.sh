#!/usr/bin/env bash
# Expected: a value has one type, whether a configuration file or the command line gives it. Quotation marks make a string of it, as
#   Snakemake's list of frequent questions says.
# Happens: `--config` tries int and float before YAML, and takes quotation marks off first. The language code nan (Southern Min, ISO 639-3)
#   is the float NaN, which equals no language; the abbreviated commit 7e12345 is infinity, and the name 2026_11 is the number 202611,
#   quoted or not. In a file the first two are strings, and in a list on the command line all three are. The language code no is the other
#   way round: it is false in a file, and a string on the command line. Hydra takes nan for a float, too, and obeys quotation marks.
# Versions: snakemake 9.27.1, hydra-core 1.3.8. Date: 2026-11-30.
# Source: parse_config in src/snakemake/cli.py of https://github.com/snakemake/snakemake, and
#   https://github.com/snakemake/snakemake/issues/3650 (quotation marks); https://hydra.cc/docs/advanced/override_grammar/basic/ (floats).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q snakemake==9.27.1 hydra-core==1.3.8
export HOME=$folder

cat > Snakefile <<'SNAKEFILE'
print("values:", *(repr(config[name]) for name in ("target", "commit", "corpus", "source")), config["target"] in ["deu", "nan"])
rule all:
SNAKEFILE
cat > file.yaml <<'YAML'
target: nan
commit: 7e12345
corpus: 2026_11
source: no
YAML
values() {
    venv/bin/snakemake --dry-run --quiet all "$@" 2>&1 | grep "^values:" || echo "values: none"
}
file=$(values --configfile file.yaml)
bare=$(values --config target=nan commit=7e12345 corpus=2026_11 source=no)
quoted=$(values --config 'target="nan"' "commit='7e12345'" 'corpus="2026_11"' 'source="no"')
listed=$(values --config 'target=[nan, deu]' 'commit=[7e12345]' 'corpus=[2026_11]' 'source=[no]')
hydra=$(venv/bin/python - <<'PYTHON'
from hydra.core.override_parser.overrides_parser import OverridesParser

parsed = OverridesParser.create().parse_overrides(["target=nan", "target='nan'", "source=no"])
print(*(repr(each.value()) for each in parsed))
PYTHON
)
echo "snakemake $(venv/bin/snakemake --version), $(venv/bin/pip freeze | grep ^hydra-core); whether the target is one of deu and nan comes last"
printf '%s\n' "file: $file" "command line: $bare" "quoted: $quoted" "lists: $listed" "Hydra: $hydra"
expected="values: nan inf 202611 'no' False"
if [ "$bare" != "$expected" ] || [ "$quoted" != "$expected" ] || [ "$file" != "values: 'nan' '7e12345' 202611 False True" ] ||
    [ "$listed" != "values: ['nan', 'deu'] ['7e12345'] ['2026_11'] ['no'] False" ] || [ "$hydra" != "nan 'nan' 'no'" ]; then
    echo "changed: Snakemake or Hydra reads values of the command line in another way" >&2
    exit 1
fi
