"""What `collect` copies from scores/searches to results/searches: the files of the entries of this block of params.yaml."""

FOLDER, BLOCKS = "searches", ("searches",)
