"""Untrusted archives: only the named members are read, and no file is written."""

import bz2
import gzip
import io
import lzma
import random
import tarfile
from functools import partial

import pytest

from pipeline.text.archives import members, unpacked
from tests.support.packed import build, snapshot, zipped
from tests.support.refusals import refused

PAIR = {"dev/newstest2013.en": b"one\ntwo\n", "dev/newstest2013.de": b"eins\nzwei\n"}
NAMES = list(PAIR)


def contents(archive, names=NAMES):
    return {name: b"".join(stream) for name, stream in members(archive, names)}


def plain(path):
    with unpacked(path) as stream:
        return b"".join(stream)


PACKED = {"giga-fren.release2.fixed.en.gz": gzip.compress(b"a\n"), "giga.fr.xz": lzma.compress(b"b\n")}
MODES = {"dev.tgz": "w:gz", "dev.tar": "w", "dev.tar.xz": "w:xz", "dev.zip": ""}


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("prefix", ["", "./"])
def test_named_members_come_out_and_nothing_is_unpacked(tmp_path, name, prefix):
    files = {"dev/other.cs": b"x\n", **PAIR, **PACKED, "README": b"y\n"}
    archive = tmp_path / name
    if name == "dev.zip":
        archive.write_bytes(zipped(*files.items()))
    else:
        build(archive, {f"{prefix}{member}": data for member, data in files.items()}, MODES[name])
    before = snapshot(tmp_path)
    assert contents(archive) == PAIR
    assert contents(archive, NAMES[:1]) == {NAMES[0]: PAIR[NAMES[0]]}
    assert contents(archive, list(PACKED)) == dict(zip(PACKED, [b"a\n", b"b\n"])), "packed members come unpacked"
    with refused("no member dev/newstest2013.fr; similar names are dev/newstest2013."):
        contents(archive, [NAMES[0], "dev/newstest2013.fr"])
    assert snapshot(tmp_path) == before


def test_a_member_that_an_archive_holds_twice_is_refused(tmp_path):
    archive = build(tmp_path / "dev.tar", PAIR, "w")
    with tarfile.open(archive, "a") as tar:  # tar -x would take the added member
        tar.addfile(tarfile.TarInfo(NAMES[0]))
        tar.addfile(tarfile.TarInfo("other"))
        tar.addfile(tarfile.TarInfo("other"))
    with refused("holds dev/newstest2013.en and dev/newstest2013.en; one "):
        contents(archive)
    assert contents(archive, NAMES[1:]) == {NAMES[1]: PAIR[NAMES[1]]}


def hostile(name, kind=tarfile.REGTYPE, link=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


HOSTILE = {
    "parent": hostile("../evil"),
    "parent inside": hostile("dev/../../evil"),
    "absolute": hostile("/tmp/evil-of-an-archive"),
    "symbolic link": hostile("evil", tarfile.SYMTYPE, "/etc/passwd"),
    "symbolic link upwards": hostile("evil", tarfile.SYMTYPE, "../../etc/passwd"),
    "hard link": hostile("evil", tarfile.LNKTYPE, "/etc/passwd"),
    "hard link upwards": hostile("evil", tarfile.LNKTYPE, "../evil"),
    "character device": hostile("evil", tarfile.CHRTYPE),
    "block device": hostile("evil", tarfile.BLKTYPE),
    "pipe": hostile("evil", tarfile.FIFOTYPE),
}


@pytest.mark.parametrize("member", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_an_archive_with_something_unsafe_is_refused_and_nothing_is_written(tmp_path, member, first):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    archive = build(folder / "dev.tgz", PAIR, before=[member] * first, after=[member] * (not first))
    before = snapshot(tmp_path)
    with refused("is refused: it holds"):
        contents(archive)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.GNUTYPE_SPARSE])
def test_a_named_member_is_a_plain_file(tmp_path, kind):
    archive = build(tmp_path / "dev.tgz", PAIR, after=[hostile("dev/link", kind, "newstest2013.en")])
    assert contents(archive) == PAIR  # a link that is not requested does no harm
    with refused("not a regular file"):
        contents(archive, ["dev/link"])


def with_header(content, size):
    """A .gz file of exactly `size` bytes, the rest of which is a long name in its header."""
    packed = bytearray(gzip.compress(content, mtime=0))
    packed[3] |= 8  # the header has a name, which ends with 0
    return bytes(packed[:10] + b"x" * (size - len(packed) - 1) + b"\0" + packed[10:])


@pytest.mark.parametrize("unpacked, packed", [(16_800_000, 168_000), (1 << 24, 100_000)])
def test_a_file_that_unpacks_to_100_times_its_size_or_to_16_mib_is_no_bomb(tmp_path, unpacked, packed):
    (tmp_path / "a.gz").write_bytes(with_header(bytes(unpacked), packed))
    assert len(plain(tmp_path / "a.gz")) == unpacked
    (tmp_path / "a.gz").write_bytes(with_header(bytes(unpacked + 1), packed))
    with refused(f"a.gz is refused: {packed:,} bytes unpack to {unpacked + 1:,}, which no text does"):
        plain(tmp_path / "a.gz")


SPARSE = {"GNU.sparse.size": "9", "GNU.sparse.numblocks": "1"}
HEADERS = {
    "a name with NUL": {"path": "dev/a\0b"},
    "a link with NUL": {"linkpath": "a\0b"},
    "a sparse size": SPARSE | {"GNU.sparse.size": "abc"},
    "a sparse map": SPARSE | {"GNU.sparse.map": "a,b"},
    "a sparse 1.0 map": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"},
}


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
def test_an_archive_with_headers_that_cannot_be_is_named_in_one_line(tmp_path, headers):
    member = hostile("dev/evil", tarfile.SYMTYPE if "linkpath" in headers else tarfile.REGTYPE, "other")
    member.pax_headers, archive = headers, tmp_path / "dev.tgz"
    with tarfile.open(archive, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        member.size = 0 if member.issym() else 512
        tar.addfile(member, io.BytesIO(b"no number\n" * 52))
    before = snapshot(tmp_path)
    with refused("dev.tgz is "):
        contents(archive)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/../../evil", "a\\..\\..\\evil", NAMES[0]])
def test_a_zip_file_with_something_unsafe_is_refused(tmp_path, name):
    (tmp_path / "dev.zip").write_bytes(zipped(*PAIR.items(), (name, b"evil")))
    with refused("is refused: it holds"):
        contents(tmp_path / "dev.zip")


ZEROS = bytes(17 << 20)


def larger_than_it_could_be(path):
    member = hostile("bomb")
    member.pax_headers = {"size": "99999999999999999999"}
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(member)


BOMBS = {
    "a.gz": lambda path: path.write_bytes(gzip.compress(ZEROS)),
    "a.xz": lambda path: path.write_bytes(lzma.compress(ZEROS, preset=0)),
    "a.tgz": lambda path: build(path, {"dev/other": ZEROS}),
    "nested.tar": lambda path: build(path, {"bomb": gzip.compress(ZEROS)}, "w"),
    "a.zip": lambda path: path.write_bytes(zipped(("bomb", ZEROS))),
    "nested.zip": lambda path: path.write_bytes(zipped(("bomb", gzip.compress(ZEROS)))),
    "pax.tgz": larger_than_it_could_be,
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(tmp_path, name):
    path = tmp_path / name
    BOMBS[name](path)
    with refused(name, "is refused: ", " bytes unpack to "):
        plain(path) if name in ("a.gz", "a.xz") else contents(path, ["bomb"])


LARGE = {name: data * 99_999 for name, data in PAIR.items()}
NOISE = random.Random(1).randbytes(9999)
WHOLE = {
    "a.gz": lambda path: path.write_bytes(gzip.compress(bytes(range(256)) * 999)),
    "a.xz": lambda path: path.write_bytes(lzma.compress(bytes(range(256)) * 999)),
    "a.tgz": lambda path: build(path, LARGE),
    "a.tar": lambda path: build(path, LARGE, "w"),
    "a.txz": lambda path: build(path, LARGE, "w:xz"),
    "a.zip": lambda path: path.write_bytes(zipped((NAMES[0], NOISE), (NAMES[1], b"x" * 999))),
}


def flipped(whole, place):
    content = bytearray(whole)
    content[place] ^= 1
    return bytes(content)


def encrypted(whole):
    """The zip file with the marks of encryption at its first member."""
    return flipped(flipped(whole, 6), whole.index(b"PK\x01\x02") + 8)


@pytest.mark.parametrize(
    "pack", [gzip.compress, lzma.compress, bz2.compress, partial(lzma.compress, format=lzma.FORMAT_ALONE)]
)
def test_all_streams_of_a_compressed_file_are_read_and_none_is_left_out_in_silence(tmp_path, monkeypatch, pack):
    monkeypatch.setattr("pipeline.text.archives.CHUNK", 8)
    parts, path = [pack(b"%d\n" % number) for number in range(3)], tmp_path / "text"
    for padding in (b"", bytes(4), bytes(20)):  # as in section 2.2 of the .xz file format
        path.write_bytes(padding.join([*parts, b""]))
        assert plain(path) == b"0\n1\n2\n"
    for damaged in (parts[0] + flipped(parts[1], 0), parts[0] + bytes(4) + b"text", parts[0] + parts[1][:5]):
        path.write_bytes(damaged)
        with refused("text is damaged or truncated"):
            plain(path)


@pytest.mark.parametrize("name", WHOLE)
def test_a_damaged_file_is_named_in_one_line(tmp_path, name):
    path = tmp_path / name
    WHOLE[name](path)
    whole = path.read_bytes()
    read = plain if name in ("a.gz", "a.xz") else contents
    damages = [whole[: len(whole) // 2], whole[: len(whole) // 3], whole[:100]]
    if name != "a.tar":  # which has no sum
        damages += [whole[:-9], flipped(whole, len(whole) // 2), flipped(whole, -6), b"<html>Not Found</html>"]
    if name == "a.zip":
        damages = [whole[:-9], whole[:500], flipped(whole, 200), encrypted(whole)]
    for damaged in damages:
        path.write_bytes(damaged)
        with refused(name, "damaged"):
            read(path)
