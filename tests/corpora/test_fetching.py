"""Downloads from a local site that truncates, stalls, states wrong headers, redirects and recovers."""

import dataclasses
import gzip
import hashlib
import json
import random
import re
import shutil
import threading
import time
from types import SimpleNamespace

import pytest

from pipeline.settings.addresses import is_url
from pipeline.settings.download import Sum
from pipeline.text.fetching import Fetcher
from pipeline.text.transfer import PATIENT
from tests.support.local_site import Fault, serving
from tests.support.refusals import refused

NAME = "/wmt14/training-parallel-nc-v9.tgz"
BODY = random.Random(1).randbytes(300_000)
SUM = Sum("sha256", hashlib.sha256(BODY).hexdigest(), "params.yaml")


@pytest.fixture
def site():
    with serving() as site:
        site.files[NAME] = BODY
        yield site


@pytest.fixture
def slept(monkeypatch):
    """The waits of urllib3, which are not waited for."""
    waits = []
    monkeypatch.setattr("urllib3.util.retry.time", SimpleNamespace(sleep=waits.append, time=time.time))
    return waits


@pytest.fixture
def fetcher(tmp_path, slept):
    """`fetcher(mirror=..., attempts=..., timeout=...)`. It appends its waits to `slept` and does not wait."""

    def make(mirror=None, attempts=3, timeout=5.0, clone="clone"):
        downloads = tmp_path / clone / "work" / "downloads"
        return Fetcher(mirror, downloads, tmp_path / "checksums.json", PATIENT.new(total=attempts - 1), timeout)

    return make


def test_a_file_is_downloaded_once_and_then_needs_no_network(site, fetcher):
    path = fetcher().fetch(site.url(NAME), SUM)
    assert path.read_bytes() == BODY and path.name == "training-parallel-nc-v9.tgz"
    assert fetcher().fetch(site.url(NAME), SUM) == path
    assert len(site.requests) == 1
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name, path.name + ".lock"]
    path.write_bytes(BODY[:-1])  # it goes bad on the disk
    assert fetcher().fetch(site.url(NAME), SUM).read_bytes() == BODY
    assert path.with_name(path.name + ".wrong-sum").read_bytes() == BODY[:-1]
    site.packs = True
    assert fetcher(clone="other").fetch(site.url(NAME), None).read_bytes() == BODY, "the bytes of the file are asked for"


def test_a_file_of_two_sites_and_its_sum_packed_or_unpacked_are_told_apart(site, fetcher):
    site.files |= {"/wmt14/dev.tgz": b"one", "/wmt19/dev.tgz": b"two"}
    paths = [fetcher().fetch(site.url(f"/{year}/dev.tgz"), None) for year in ("wmt14", "wmt19")]
    assert [path.read_bytes() for path in paths] == [b"one", b"two"]
    unpacked = dataclasses.replace(SUM, unpacked=True)
    for level in (1, 9):
        packed = site.files[f"/{level}.gz"] = gzip.compress(BODY, level)
        for _ in range(2):
            assert fetcher().fetch(site.url(f"/{level}.gz"), unpacked).read_bytes() == packed
    assert len(site.requests) == 4


OTHER = {"Content-Range": f"bytes 7-{len(BODY) - 1}/{len(BODY)}"}
NONSENSE = {"Content-Range": f"bytes {'9' * 5000}-{len(BODY) - 1}/{'9' * 5000}"}
ASKED = [Fault(status=429, headers={"Retry-After": seconds}) for seconds in ("7", "90000", "0")]
FAULTY = {  # the faults, and the waits: at most 10 minutes; then the back-off, as 0 seconds are not enough
    "it cuts six times": ([Fault(after=40_000)] * 6, []),  # after new bytes, the count of attempts begins anew
    "it stalls": ([Fault(after=150_000, stall=True)], None),
    "it sends another range": ([Fault(after=150_000), Fault(headers=OTHER)], None),
    "it states a range that cannot be": ([Fault(after=150_000), Fault(headers=NONSENSE)], None),
    "it asks to wait": ([Fault(status=503), *ASKED], [7.0, 600.0, 8.0]),
    "it redirects": ([Fault(status=301, headers={"Location": "/moved.tgz"})], None),
}


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("fault", FAULTY)
def test_a_file_arrives_whole_from_a_faulty_server(site, fetcher, slept, fault, ranges):
    faults, waits = FAULTY[fault]
    site.files["/moved.tgz"], site.ranges = BODY, ranges or fault == "it cuts six times"
    site.faults[NAME] = list(faults)
    assert fetcher(attempts=5, timeout=0.5).fetch(site.url(NAME), SUM).read_bytes() == BODY
    assert waits in (None, slept)


REFUSING = {
    "gone": ([Fault(status=404)], ["wmt14/training-parallel-nc-v9.tgz: status 404", "machine.mirror"], []),
    "busy for ever": ([Fault(status=503)] * 9, ["too many 503 error responses", "; run again"], [2.0, 4.0, 8.0]),
    "always cut at the same place": ([Fault(after=100_000)] * 20, ["gave up"], None),
}


@pytest.mark.parametrize("fault", REFUSING)
def test_a_server_that_has_no_file_is_given_up(site, fetcher, slept, fault):
    faults, said, waits = REFUSING[fault]
    site.faults[NAME], site.ranges = list(faults), False
    with refused(*said):
        fetcher(attempts=5).fetch(site.url(NAME), SUM)
    assert waits in (None, slept)


def broken_off(site, fetcher, **fault):
    """Let a download break off half way, for a later process to resume."""
    site.faults[NAME] = [Fault(after=150_000, **fault)]
    with refused("gave up"):
        fetcher(attempts=1).fetch(site.url(NAME), None)


def test_a_cut_connection_is_resumed_by_range_also_by_a_later_process(site, fetcher):
    broken_off(site, fetcher)
    (partial,) = fetcher().downloads.rglob("*.partial")
    assert fetcher().fetch(site.url(NAME), SUM).read_bytes() == BODY
    (_, first), (_, second) = site.requests
    assert first is None and 100_000 < int(second.removeprefix("bytes=").rstrip("-")) <= 150_000
    partial.write_bytes(BODY + b"more")
    record = {"url": site.url(NAME), "size": None, "validator": None}
    partial.with_name(partial.name + ".json").write_text(json.dumps(record))
    partial.with_name(NAME.rpartition("/")[2]).unlink()
    assert fetcher().fetch(site.url(NAME), SUM).read_bytes() == BODY, "a part longer than the file starts anew"
    (path,) = fetcher().downloads.rglob(NAME.rpartition("/")[2])
    path.rename(partial)  # killed before this file got its name
    partial.with_name(partial.name + ".json").write_text(json.dumps(record | {"size": len(BODY)}))
    site.requests.clear()
    assert fetcher().fetch(site.url(NAME), SUM).read_bytes() == BODY and site.requests == []


WEAK = {"ETag": 'W/"1"'}
DATED = WEAK | {"Last-Modified": "Mon, 01 Jun 2026 10:00:00 GMT"}


@pytest.mark.parametrize(
    ("headers", "now"),
    [({}, BODY[::-1]), (WEAK, BODY[::-1] + b"more"), (DATED, BODY[::-1])],
    ids=["by its tag", "by its size", "by its date"],
)
def test_a_file_that_changed_on_the_site_is_not_glued_to_the_old_part(site, fetcher, headers, now):
    broken_off(site, fetcher, headers=headers)
    site.files[NAME] = now
    assert fetcher().fetch(site.url(NAME), None).read_bytes() == now


def test_a_part_from_a_mirror_is_not_glued_to_the_bytes_of_the_site(site, fetcher):
    site.files["/copies" + NAME] = BODY[::-1]
    site.faults["/copies" + NAME] = [Fault(after=150_000, headers=WEAK)]
    path = fetcher(mirror=site.url("/copies"), attempts=1).fetch(site.url(NAME), None)
    assert path.read_bytes() == BODY and (NAME, None) in site.requests


@pytest.mark.parametrize("sent", [BODY[:-1] + bytes([BODY[-1] ^ 1]), BODY[:200_000]], ids=["flipped", "truncated"])
def test_a_wrong_sum_is_refused_with_both_sums_and_the_file_kept_aside(site, fetcher, sent):
    for name, expected in ((NAME, SUM), ("/train.en.gz", dataclasses.replace(SUM, unpacked=True))):
        site.files[name] = sent if name == NAME else gzip.compress(sent)
        with refused(SUM.value, hashlib.sha256(sent).hexdigest(), f"{name.rpartition('/')[2]}.wrong-sum"):
            fetcher().fetch(site.url(name), expected)
    (aside,) = fetcher().downloads.rglob("*.tgz.wrong-sum")
    assert aside.read_bytes() == sent
    assert not list(fetcher().downloads.rglob("*.tgz"))
    site.files[NAME] = BODY
    assert fetcher().fetch(site.url(NAME), SUM).read_bytes() == BODY


@pytest.mark.parametrize("location", ["file://", "data:", "http://[", "http://host:port/"])
def test_a_redirect_to_anything_but_http_is_refused(site, fetcher, slept, tmp_path, location):
    (tmp_path / "secret.tgz").write_text("secret")
    location += str(tmp_path / "secret.tgz") if not location.startswith("http") else ""
    site.faults[NAME] = [Fault(status=302, headers={"Location": location})]
    with refused(NAME, "; run again"):
        fetcher().fetch(site.url(NAME), SUM)
    assert slept == [] and not list(fetcher().downloads.rglob("*.tgz"))


NO_NUMBER = ["abc", "-1", "9" * 5000, "Mon, 01 Jan 99999999999 00:00:00 GMT"]


@pytest.mark.parametrize("value", NO_NUMBER, ids=range(len(NO_NUMBER)))
def test_a_length_or_a_wait_that_is_no_number_is_one_line_or_counts_as_none(site, fetcher, value):
    site.faults[NAME] = [Fault(headers={"Content-Length": value}, tells_length=False)] * 2
    with refused(NAME, "does not state the length"):
        fetcher().fetch(site.url(NAME), None)
    assert not fetcher().checksums.exists(), "nothing is recorded where a cut could not be seen"
    assert fetcher().fetch(site.url(NAME), SUM).read_bytes() == BODY
    site.files["/busy"], site.faults["/busy"] = BODY, [Fault(status=503, headers={"Retry-After": value})]
    with refused("/busy", "run again"):
        fetcher().fetch(site.url("/busy"), SUM)


ADDRESSES = ["file:///etc/passwd", "FILE:/etc/passwd", "javascript:1", "http://host/../../x.tgz", "http://host/"]
ADDRESSES += ["http:///a.tgz", "https://host/a;rm -rf.tgz", "https://host/.bashrc", "http://[/a.tgz", "http://host:99999/a"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_is_neither_http_nor_a_path_and_a_mirror_that_is_no_folder_are_refused(fetcher, address):
    with refused("refused"):
        is_url(address)
    with refused("no/such/folder"):
        fetcher(mirror="no/such/folder").fetch("http://127.0.0.1:1/a.tgz", SUM)


@pytest.mark.parametrize("name", ["/en-sr@Latn.txt.zip", "/my%20text~v1,2(a).tgz"])
def test_a_file_name_may_have_the_characters_of_published_ones(site, fetcher, name):
    """KDE4 on OPUS has the first; others may stand in a path (RFC 3986)."""
    site.files[name] = BODY
    assert fetcher().fetch(site.url(name), SUM).read_bytes() == BODY


@pytest.mark.parametrize("place", ["training-parallel-nc-v9.tgz", NAME[1:]], ids=["by name", "by path"])
def test_a_mirror_is_asked_first_and_a_folder_is_used_where_it_lies(site, fetcher, tmp_path, place):
    file = tmp_path / "mirror" / place
    file.parent.mkdir(parents=True)
    file.write_bytes(BODY)
    assert fetcher(mirror=str(tmp_path / "mirror")).fetch(site.url(NAME), SUM) == file
    assert site.requests == []
    site.files = {f"/copies/{place}": BODY}
    assert fetcher(mirror=site.url("/copies")).fetch(site.url(NAME), SUM).read_bytes() == BODY
    assert NAME not in [path for path, _ in site.requests]
    site.files = {NAME: BODY}
    for clone, mirror in (("a", str(tmp_path)), ("b", site.url("/copies/"))):  # which lack it
        assert fetcher(mirror=mirror, clone=clone).fetch(site.url(NAME), SUM).read_bytes() == BODY


def test_a_file_of_a_mirror_that_is_wrong_or_may_be_cut_is_skipped_and_left_where_it_is(site, fetcher, tmp_path, capsys):
    (tmp_path / "mirror").mkdir()
    file = tmp_path / "mirror" / "training-parallel-nc-v9.tgz"
    file.write_bytes(BODY[1:])
    path = fetcher(mirror=str(tmp_path / "mirror")).fetch(site.url(NAME), SUM)
    assert path.read_bytes() == BODY and path.parent.parent == fetcher().downloads
    assert re.search(f"{file}: its sha256 is .* but params.yaml has {SUM.value}; skipped", capsys.readouterr().err)
    assert file.read_bytes() == BODY[1:]
    site.files["/copies" + NAME] = BODY[:1000]
    site.faults["/copies" + NAME] = [Fault(tells_length=False)]
    assert fetcher(mirror=site.url("/copies"), clone="b").fetch(site.url(NAME), None).read_bytes() == BODY


def test_a_sum_that_was_never_published_is_recorded_and_later_downloads_are_held_to_it(site, fetcher):
    site.files["/a.tar"] = b"a"
    fetcher().fetch(site.url(NAME), None)
    fetcher().fetch(site.url("/a.tar"), None)
    text = fetcher().checksums.read_text()
    assert json.loads(text)[site.url(NAME)] == SUM.value
    assert list(json.loads(text)) == sorted(json.loads(text))
    site.files[NAME] = BODY[1:]
    with refused("checksums.json has " + SUM.value):
        fetcher(clone="another clone").fetch(site.url(NAME), None)
    assert fetcher().checksums.read_text() == text
    fetcher().checksums.write_text("<<<<<<< HEAD")
    with refused("checksums.json is not a mapping", "restore it from git"):
        fetcher().fetch(site.url(NAME), None)


def test_a_sum_in_params_yaml_counts_more_than_a_recorded_one(site, fetcher):
    assert fetcher().fetch(site.url(NAME), None).read_bytes() == BODY
    now = site.files[NAME] = BODY[::-1]
    assert fetcher().fetch(site.url(NAME), None).read_bytes() == BODY, "it is not downloaded again"
    stated = Sum("sha256", hashlib.sha256(now).hexdigest(), "params.yaml")
    assert fetcher().fetch(site.url(NAME), stated).read_bytes() == now


def test_two_at_once_download_it_once(site, fetcher):
    site.faults[NAME] = [Fault(pause=0.05)]
    paths = []
    threads = [threading.Thread(target=lambda: paths.append(fetcher().fetch(site.url(NAME), SUM))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(site.requests) == 1 and [path.read_bytes() == BODY for path in paths] == [True, True]


def test_a_full_disk_is_seen_before_the_download_and_room_for_the_rest_is_enough(site, fetcher, monkeypatch):
    site.files["/huge.tar"] = b""
    site.faults["/huge.tar"] = [Fault(tells_length=False, headers={"Content-Length": str(1 << 60)})]
    with refused("bytes remain"):
        fetcher().fetch(site.url("/huge.tar"), None)
    site.files[NAME], free = BODY, iter([len(BODY), len(BODY) - 100_000])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=next(free)))
    site.faults[NAME] = [Fault(after=150_000)]  # more than 100,000 bytes arrive
    assert fetcher().fetch(site.url(NAME), SUM).read_bytes() == BODY


def test_a_body_in_chunks_needs_no_length_and_is_never_cut_unseen(site, fetcher):
    """RFC 9112, 7.1: the chunk of length 0 ends the body."""
    fault = Fault(tells_length=False, headers={"Transfer-Encoding": "chunked"})
    site.files[NAME], site.faults[NAME] = b"5\r\nwhole\r\n", [fault] * 3
    with refused("gave up"):
        fetcher().fetch(site.url(NAME), None)
    site.files[NAME], site.faults[NAME] = b"5\r\nwhole\r\n0\r\n\r\n", [fault]
    assert fetcher(clone="other").fetch(site.url(NAME), None).read_bytes() == b"whole"


def test_a_path_is_held_to_its_sum_and_used_where_it_lies(fetcher, tmp_path):
    file = tmp_path / "corpus.en"
    file.write_bytes(BODY)
    assert fetcher().fetch(str(file), SUM) == file
    with refused(f"its sha256 is {SUM.value}, but params.yaml has 0000"):
        fetcher().fetch(str(file), Sum("sha256", "0" * 64, "params.yaml"))
    with refused("no such file"):
        fetcher().fetch(str(tmp_path), None)
    assert file.read_bytes() == BODY


def test_own_text_may_be_a_linked_file_but_not_lie_in_a_linked_folder(fetcher, here):
    """DVC follows the link `text` and links to files in it, but not links to folders in it."""
    (here / "elsewhere" / "text").mkdir(parents=True)
    (here / "elsewhere" / "corpus.en").write_bytes(BODY)
    (here / "text").symlink_to("elsewhere/text")
    (here / "text" / "corpus.en").symlink_to("../corpus.en")
    (here / "text" / "mine").symlink_to("..")
    assert fetcher().fetch("text/corpus.en", SUM).read_bytes() == BODY
    with refused("text/mine/corpus.en: text/mine is a link to a folder"):
        fetcher().fetch("text/mine/corpus.en", SUM)


@pytest.mark.parametrize("fault", ["gone", "other bytes", "no host"])
def test_the_next_address_is_tried_where_the_first_fails(site, fetcher, capsys, fault):
    urls = [site.url("/old/a.tgz"), site.url(NAME)]
    site.files |= {"/old/a.tgz": BODY[1:]} if fault == "other bytes" else {}
    urls[0] = "http://127.0.0.1:1/a.tgz" if fault == "no host" else urls[0]
    path = fetcher().fetch(urls[0], SUM, urls[1])
    assert path.read_bytes() == BODY and path.name == "a.tgz"
    assert len([line for line in capsys.readouterr().err.split("\n") if "skipped" in line and urls[0] in line]) == 1
    assert fetcher().fetch(urls[0], SUM, urls[1]) == path
    site.files.clear()
    with refused(f"{NAME}: status 404"):
        fetcher(clone="other").fetch(urls[0], SUM, urls[1])
    assert not fetcher().checksums.exists(), "a sum is recorded only where none is known"
    site.files[NAME] = BODY
    fetcher(clone="third").fetch(site.url("/gone.tgz"), None, urls[1])
    assert json.loads(fetcher().checksums.read_text()) == {site.url("/gone.tgz"): SUM.value}
