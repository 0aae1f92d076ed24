"""The special pieces of every vocabulary of this project."""

PAD, UNK, BOS, EOS = 0, 1, 2, 3  # the first ids
