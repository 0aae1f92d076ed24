"""Untrusted archives: only the named members are read, and no file is written."""

import bz2
import gzip
import io
import lzma
import random
import tarfile
import warnings
import zipfile

import pytest

from pipeline.corpora.archives import members, unpacked
from transformer.config.reading import UserError

PAIR = {"dev/newstest2013.en": b"one\ntwo\n", "dev/newstest2013.de": b"eins\nzwei\n"}
NAMES = list(PAIR)


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


def contents(archive, names=NAMES):
    return {name: b"".join(stream) for name, stream in members(archive, names)}


def plain(path):
    with unpacked(path) as stream:
        return b"".join(stream)


def snapshot(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@pytest.mark.parametrize(
    "name, mode", [("dev.tgz", "w:gz"), ("dev.tar", "w"), ("dev.tar.xz", "w:xz"), ("dev.tar.gz", "w:gz")]
)
def test_named_members_come_out_and_nothing_is_unpacked(tmp_path, name, mode):
    archive = build(tmp_path / name, {"dev/other.cs": b"x\n", **PAIR, "README": b"y\n"}, mode)
    before = snapshot(tmp_path)
    assert contents(archive) == PAIR
    assert contents(archive, NAMES[:1]) == {NAMES[0]: PAIR[NAMES[0]]}
    assert snapshot(tmp_path) == before


def test_members_that_are_packed_come_unpacked(tmp_path):
    files = {"giga-fren.release2.fixed.en.gz": gzip.compress(b"a\n"), "giga.fr.xz": lzma.compress(b"b\n")}
    archive = build(tmp_path / "training-giga-fren.tar", files, "w")
    assert contents(archive, list(files)) == dict(zip(files, [b"a\n", b"b\n"]))


def test_a_name_may_begin_with_a_dot_and_a_slash(tmp_path):
    assert contents(build(tmp_path / "dev.tgz", {f"./{name}": data for name, data in PAIR.items()})) == PAIR


def test_a_missing_member_is_named_with_near_ones(tmp_path):
    with pytest.raises(UserError, match=r"no member dev/newstest2013\.fr; similar names are dev/newstest2013\.\w\w, "):
        contents(build(tmp_path / "dev.tgz", PAIR), [NAMES[0], "dev/newstest2013.fr"])


def test_a_member_that_an_archive_holds_twice_is_refused(tmp_path):
    archive = build(tmp_path / "dev.tar", PAIR, "w")
    with tarfile.open(archive, "a") as tar:  # tar -x would take the added member
        tar.addfile(tarfile.TarInfo(NAMES[0]))
        tar.addfile(tarfile.TarInfo("other"))
        tar.addfile(tarfile.TarInfo("other"))
    with pytest.raises(UserError, match=r"holds dev/newstest2013\.en twice"):
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
    with pytest.raises(UserError, match="is refused: it holds"):
        contents(archive)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_a_named_member_is_a_plain_file(tmp_path, kind):
    archive = build(tmp_path / "dev.tgz", PAIR, after=[hostile("dev/link", kind, "newstest2013.en")])
    assert contents(archive) == PAIR  # a link that is not requested does no harm
    with pytest.raises(UserError, match="not a regular file"):
        contents(archive, ["dev/link"])


def test_bombs_are_refused(tmp_path):
    zeros = bytes(1 << 25)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(zeros))
    (tmp_path / "bomb.xz").write_bytes(lzma.compress(zeros, preset=0))
    build(tmp_path / "bomb.tgz", {"dev/other": zeros})
    build(tmp_path / "nested.tar", {"bomb.gz": gzip.compress(zeros)}, "w")
    for refused in (
        lambda: plain(tmp_path / "bomb.gz"),
        lambda: plain(tmp_path / "bomb.xz"),
        lambda: contents(tmp_path / "bomb.tgz", ["x"]),
        lambda: contents(tmp_path / "nested.tar", ["bomb.gz"]),
    ):
        with pytest.raises(UserError, match=r"(bomb|nested).*is refused: .* bytes unpack to"):
            refused()


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
    with pytest.raises(UserError, match=rf"a\.gz is refused: {packed:,} bytes unpack to {unpacked + 1:,}; at most 100 "):
        plain(tmp_path / "a.gz")


def test_a_sparse_member_is_refused(tmp_path):
    member = hostile("dev/sparse")
    member.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.size": str(1 << 26)}
    member.pax_headers |= {"GNU.sparse.map": f"{(1 << 26) - 1},1"}
    archive = tmp_path / "dev.tgz"
    with tarfile.open(archive, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        member.size = 1
        tar.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(UserError, match="not a regular file"):
        contents(archive, ["dev/sparse"])


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
    with pytest.raises(UserError, match=r"dev\.tgz is damaged, truncated or not a tar file: ") as error:
        contents(archive)
    assert "\n" not in str(error.value)
    assert snapshot(tmp_path) == before


def test_a_member_larger_than_the_archive_could_be_is_refused_and_not_skipped(tmp_path):
    member = hostile("dev/other")
    member.pax_headers = {"size": "99999999999999999999"}
    with tarfile.open(tmp_path / "dev.tgz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(member)
    with pytest.raises(UserError, match=r"dev\.tgz: dev/other is refused: .* bytes unpack to 100,000,000,000"):
        contents(tmp_path / "dev.tgz")


def test_repetitive_text_is_no_bomb(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"the same line\n" * 500_000))
    assert plain(tmp_path / "a.gz").count(b"\n") == 500_000


@pytest.mark.parametrize("pack, name", [(gzip.compress, "a.gz"), (lzma.compress, "a.xz")])
def test_a_damaged_file_is_named_in_one_line(tmp_path, pack, name):
    whole = pack(bytes(range(256)) * 999)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (whole[:-9], whole[: len(whole) // 2], bytes(flipped), b"<html>Not Found</html>"):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(UserError, match=rf"{name} is damaged or truncated") as error:
            plain(tmp_path / name)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name, mode", [("dev.tgz", "w:gz"), ("dev.tar", "w"), ("dev.txz", "w:xz")])
def test_a_cut_archive_is_named_in_one_line(tmp_path, name, mode):
    large = {name: data * 99_999 for name, data in PAIR.items()}
    whole = build(tmp_path / name, large, mode).read_bytes()
    for cut in (len(whole) // 2, len(whole) // 3, 100):
        (tmp_path / name).write_bytes(whole[:cut])
        with pytest.raises(UserError, match=rf"{name}.*(damaged|truncated)") as error:
            contents(tmp_path / name)
        assert "\n" not in str(error.value)


def test_the_sum_at_the_end_of_an_archive_is_tested_as_well(tmp_path):
    archive = build(tmp_path / "dev.tgz", PAIR)
    damaged = bytearray(archive.read_bytes())
    damaged[-6] ^= 1
    archive.write_bytes(damaged)
    with pytest.raises(UserError, match="damaged"):
        contents(archive)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, bytes])
def test_a_compression_is_recognised_by_its_first_bytes(tmp_path, pack):
    (tmp_path / "my.en").write_bytes(pack(b"one\n" * 99_999))
    assert plain(tmp_path / "my.en") == b"one\n" * 99_999
    (tmp_path / "b.en.gz").write_bytes(b"<html>Not Found</html>")
    with pytest.raises(UserError, match=r"b\.en\.gz is damaged or truncated"):
        plain(tmp_path / "b.en.gz")


def zipped(path, files, kind=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", kind) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that stands there twice
        for name, data in files:
            archive.writestr(name, data)
    return path


def test_members_of_a_zip_file_come_out(tmp_path):
    archive = zipped(tmp_path / "dev.zip", [*PAIR.items(), ("x.gz", gzip.compress(b"a\n")), ("LICENSE", b"free")])
    before = snapshot(tmp_path)
    assert contents(archive, [*NAMES, "x.gz"]) == PAIR | {"x.gz": b"a\n"}
    assert snapshot(tmp_path) == before
    with pytest.raises(UserError, match=r"no member dev/newstest2013\.fr; similar names are dev/newstest2013"):
        contents(archive, ["dev/newstest2013.fr"])


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/../../evil", "a\\..\\..\\evil", NAMES[0]])
def test_a_zip_file_with_something_unsafe_is_refused(tmp_path, name):
    archive = zipped(tmp_path / "dev.zip", [*PAIR.items(), (name, b"evil")])
    with pytest.raises(UserError, match="is refused: it holds"):
        contents(archive)


def test_a_zip_bomb_is_refused(tmp_path):
    zeros = bytes(1 << 25)
    for content in (zeros, gzip.compress(zeros)):
        archive = zipped(tmp_path / "bomb.zip", [("bomb", content)])
        with pytest.raises(UserError, match=r"bomb is refused: .* bytes unpack to"):
            contents(archive, ["bomb"])


def test_a_damaged_zip_file_is_named_in_one_line(tmp_path):
    archive = zipped(tmp_path / "dev.zip", [(NAMES[0], random.Random(1).randbytes(9999)), ("b", b"x" * 999)])
    whole = archive.read_bytes()
    encrypted = bytearray(whole)
    encrypted[6] |= 1
    encrypted[whole.index(b"PK\x01\x02") + 8] |= 1
    for damaged in (whole[:-9], whole[:500], whole[:200] + b"\0\1" + whole[202:], bytes(encrypted)):
        archive.write_bytes(damaged)
        with pytest.raises(UserError, match=r"dev\.zip.* is damaged") as error:
            contents(archive, NAMES[:1])
        assert "\n" not in str(error.value)
