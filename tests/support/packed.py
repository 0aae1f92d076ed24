"""Archives, tables, sets and a malicious object for tests, and what stands in a folder."""

import io
import json
import tarfile
import warnings
import zipfile

import pyarrow
import pyarrow.parquet


class Payload:
    """An object that creates the file `evil` when it is unpickled."""

    def __reduce__(self):
        return open, ("evil", "w")


def build(path, files, mode="w:gz", before=(), after=()):
    """A tar of `files` {name: bytes}, with empty members (TarInfo) before and after them."""
    with tarfile.open(path, mode) as tar:
        for member in before:
            tar.addfile(member)
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for member in after:
            tar.addfile(member)
    return path


def zipped(*files):
    """The bytes of a zip file with these members, each a name and bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that stands there twice
        for name, data in files:
            archive.writestr(name, data)
    return packed.getvalue()


def parquet(columns):
    """The bytes of a table, given as its columns by name."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


def structs(pairs, kind=None):
    """A table of the Hugging Face hub: a struct `translation` with one text per language."""
    held = pyarrow.struct([(language, kind or pyarrow.string()) for language in ("de", "en")])
    return parquet({"translation": pyarrow.array(pairs, held)})


def write_sets(folder, sets, languages=("en", "de")):
    """Write sets, each two lists of lines by its name, into a folder, as two files each."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, sides in sets.items():
        for language, lines in zip(languages, sides, strict=True):
            (folder / f"{name}.{language}").write_bytes("".join(f"{line}\n" for line in lines).encode())


def write_evaluation_set(folder, corpus="demo", **forms):
    """Write an evaluation set of a corpus. `forms` are the source and the target lines of each form."""
    write_sets(folder, forms)
    (folder / "set.json").write_text(json.dumps({"corpus": corpus, "languages": ["en", "de"]}))


def snapshot(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path, place=-10):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
