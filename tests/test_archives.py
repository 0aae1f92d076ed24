"""Untrusted archives: only the named members are read, and no file is written."""

import gzip
import io
import lzma
import tarfile

import pyarrow
import pyarrow.parquet
import pytest

from pipeline.corpora.archives import Unpacked, members, unpacked
from pipeline.corpora.segments import parquet_pairs, sgm_segments, text, without_mark
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


SGM = """<refset setid="newstest2014" srclang="any" trglang="de">
<doc docid="1" genre="news"><hl>
<seg id="1"> Standard &amp; Poor&apos;s </seg>
</hl><p>
<SEG id="2">a &quot;b&quot;
c</SEG><seg id="3"></seg><seg>&lt;d&gt; \u2028 e</seg>
</p></doc></refset>
"""


def sgm(data):
    return b"".join(sgm_segments(Unpacked(io.BytesIO(data), "", "test.sgm")))


def test_sgm_gives_its_segments_one_a_line():
    assert sgm(SGM.encode()).decode() == 'Standard & Poor\'s\na "b" c\n\n<d> \u2028 e\n'


@pytest.mark.parametrize("broken", [SGM.replace("</SEG>", ""), "<html></html>", SGM[: SGM.index("</SEG>")]])
def test_a_broken_sgm_is_named(broken):
    with pytest.raises(UserError, match=r"test.sgm: .*<seg> are opened"):
        sgm(broken.encode())


def test_an_sgm_in_another_encoding_is_named():
    with pytest.raises(UserError, match=r"test.sgm is not UTF-8"):
        sgm("<seg>für</seg>".encode("latin-1"))


def test_only_sgm_is_more_than_bytes():
    data = b"\xff<seg>\r\n\x00&amp;"
    assert b"".join(text(Unpacked(io.BytesIO(data), "", ""), "corpus.sgm.en")) == data
    assert b"".join(text(Unpacked(io.BytesIO(b"<seg>&amp;</seg>"), "", ""), "ref.de.sgm.gz")) == b"&\n"


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb\n"], b"a\n\xef\xbb\xbfb\n"),
        ([b"\xef", b"\xbb\xbf", b"a"], b"a"),
        ([b"\xef\xbb"], b"\xef\xbb"),
        ([b"\xef\xbb\xbf"], b""),
        ([], b""),
    ],
)
def test_a_byte_order_mark_at_the_start_is_left_out(chunks, expected):
    assert b"".join(without_mark(chunks)) == expected


STRING = pyarrow.string()


def parquet(path, pairs, languages=("de", "en"), text=STRING):
    kind = pyarrow.struct([(language, text) for language in languages])
    pyarrow.parquet.write_table(pyarrow.table({"translation": pyarrow.array(pairs, kind)}), path)
    return path


def test_parquet_gives_pairs_by_language(tmp_path):
    path = parquet(tmp_path / "a.parquet", [{"de": "für\r\nzwei\ndrei ", "en": "for"}, {"de": "", "en": "\u2028x"}])
    assert list(parquet_pairs(path, ("en", "de"))) == [
        (b"for\n", "für zwei drei\n".encode()),
        ("\u2028x\n".encode(), b"\n"),
    ]


def test_a_parquet_file_that_does_not_fit_is_named(tmp_path):
    path = parquet(tmp_path / "a.parquet", [*[{"de": "a", "en": "b"}] * 20_001, {"de": "a", "en": None}])
    with pytest.raises(UserError, match=r"a.parquet: a side of row 20,002 is null"):
        list(parquet_pairs(path, ("en", "de")))
    with pytest.raises(UserError, match="translation has no fr; it has de, en"):
        list(parquet_pairs(path, ("en", "fr")))
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"]}), path)
    with pytest.raises(UserError, match="columns are text"):
        list(parquet_pairs(path, ("en", "de")))
    whole = path.read_bytes()
    for damaged in (whole[:-7], whole.replace(b"text", b"t\xffxt")):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"a.parquet is damaged or not a parquet file"):
            list(parquet_pairs(path, ("en", "de")))


def test_two_columns_of_pairs_are_refused(tmp_path):
    pairs = pyarrow.array([{"de": "a", "en": "b"}])
    pyarrow.parquet.write_table(pyarrow.table([pairs, pairs], ["translation"] * 2), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a.parquet: .* the columns are translation, translation"):
        list(parquet_pairs(tmp_path / "a.parquet", ("en", "de")))


def test_large_strings_are_text_as_well(tmp_path):
    path = parquet(tmp_path / "a.parquet", [{"de": "ü", "en": "u"}], text=pyarrow.large_string())
    assert list(parquet_pairs(path, ("de", "en"))) == [("ü\n".encode(), b"u\n")]


@pytest.mark.parametrize("kind, value", [(pyarrow.int64(), 1), (pyarrow.binary(), b"a"), (pyarrow.float64(), 1.5)])
def test_a_parquet_column_that_is_no_text_is_named(tmp_path, kind, value):
    path = parquet(tmp_path / "a.parquet", [{"de": value, "en": value}], text=kind)
    with pytest.raises(UserError, match=rf"a\.parquet: column translation\.en holds {kind}; string is expected"):
        list(parquet_pairs(path, ("en", "de")))


def test_a_parquet_bomb_is_refused(tmp_path):
    path = parquet(tmp_path / "a.parquet", [{"de": "x" * 1000, "en": "y" * 1000}] * 30_000)
    with pytest.raises(UserError, match="bytes unpack to"):
        list(parquet_pairs(path, ("en", "de")))
