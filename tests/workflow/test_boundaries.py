"""The cuts of a lock file, one byte after another."""

from pipeline.workflow.lock_files import whole

# A lock file as DVC writes it. A line that ends a complete output has a bar before it.
LOCKED = """\
 schema: '2.0'
 stages:
   one@für:
     cmd: python -m pipeline.one --out data/one
     deps:
     - path: text
       hash: md5
       md5: 7b5b4f4c4b4a4d4e4f50515253545556.dir
       size: 12
       nfiles: 2
     params:
       params.yaml:
         base.vocabulary:
           pieces: 2000
     outs:
     - path: data/one
       hash: md5
       md5: 0b5b4f4c4b4a4d4e4f50515253545550.dir
       size: 1234
|      nfiles: 12
     - path: data/größe.json
       hash: md5
       md5: 1b5b4f4c4b4a4d4e4f50515253545551
|      size: 42
   two:
     cmd: python -m pipeline.two --out data/two
     outs:
     - path: data/two
       hash: md5
       md5: 2b5b4f4c4b4a4d4e4f50515253545552
|      size: 7
"""


def test_every_cut_of_a_lock_file_is_told_from_a_whole_one():
    """docs/reference.md: a file that ends exactly after an output or a stage counts as complete."""
    lines = LOCKED.splitlines(keepends=True)
    content = "".join(line[1:] for line in lines).encode()
    complete = {len("".join(each[1:] for each in lines[:n]).encode()) for n, line in enumerate(lines, 1) if line[0] == "|"}
    assert {cut for cut in range(len(content) + 1) if whole(content[:cut])} == complete
