#!/usr/bin/env bash
# Expected: trial.params holds the value that suggest_categorical returned.
# Happens: among choices that are equal in Python (1, True and 1.0; 0 and False) the objective gets each of them, but trial.params and
#   study.best_params have the first. A setting for which true means something else than 1 is trained with one value and reported with
#   another.
# Versions: Optuna 5.0.0. Date: 2026-11-29.
# Source: https://optuna.readthedocs.io/en/latest/reference/generated/optuna.distributions.CategoricalDistribution.html (to_internal_repr),
#   which allows bool, int and float and says nothing about equal choices.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q optuna==5.0.0

venv/bin/python - <<'PYTHON'
import sys
from importlib.metadata import version

import optuna

print("optuna", version("optuna"))
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
given = []


def objective(trial):
    value = trial.suggest_categorical("averaging", [1, True])
    given.append(value)
    return 0.0 if value is True else 1.0


study.optimize(objective, n_trials=20)
seen, recorded = {repr(value) for value in given}, {repr(trial.params["averaging"]) for trial in study.trials}
print("the objective got", sorted(seen), "and the study has", sorted(recorded))
print("the best trial used", repr(given[study.best_trial.number]), "and best_params has", study.best_params)
if seen != {"1", "True"} or recorded != {"1"}:
    sys.exit("changed: equal choices are recorded apart, or refused")
PYTHON
