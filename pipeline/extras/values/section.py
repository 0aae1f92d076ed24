"""The section of the report about values of prefixes: a table of the files in results/values."""

from collections.abc import Mapping

from pipeline.reporting.tables import Table, table

FOLDER, BLOCKS, TITLE = "values", ("values", "reverse_values"), "Values of prefixes"
OF_VALUES = (
    "A value is one line of `values` or `reverse_values` in params.yaml: a head on the decoder's output that predicts the "
    "final score of a translation from its prefixes. It is measured on all prefixes of samples of the dev set. The "
    "correlations with the final score are Pearson's: of the value, and of the length of the prefix. The calibration error "
    "is the mean distance between mean value and mean score in ten intervals of the value, weighted by their prefixes."
)
MEASURED = ("prefixes", "correlation", "correlation of the length", "calibration error")  # of a value, on dev


def tables(values: Mapping[str, Mapping]) -> list[Table]:
    rows = [
        {"value": name, "model": each["model"], "final score": each["settings"]["score"]}
        | {label: each["dev"].get(label.replace(" the ", " ").replace(" ", "_")) for label in MEASURED}
        for name, each in values.items()
    ]
    return [table("values", "Values of prefixes", rows, [OF_VALUES], places=dict.fromkeys(MEASURED, 3))]
