"""What `collect` copies from scores/values to results/values: the files of the entries of these blocks of params.yaml."""

FOLDER, BLOCKS = "values", ("values", "reverse_values")
