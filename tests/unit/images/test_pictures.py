"""Pictures are listed in a fixed order, read in place, and nothing else is."""

from __future__ import annotations

import io
import os
import pickle
import re
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from damage import mutants

from knowmore.edits import Remove
from knowmore.errors import InvalidInput, MissingData, RepeatedId
from knowmore.examples import Examples
from knowmore.images import Picture, image_folder, listing
from knowmore.images.sources import MOST_BYTES, picture_in

NAMES = ["b c/zwölf é.JPG", "a/2.png", "a/10.png", "deep/er/1.jpeg"]
ORDER = ["a/10.png", "a/2.png", "b c/zwölf é.JPG", "deep/er/1.jpeg"]
LABELS = ["a", "a", "b c", "er"]
NO_PICTURES = ["a/.hidden.png", "a/._2.png", ".cache/1.png", "a/notes.txt", "split.txt", "a/png"]


def content(name):
    return f"the bytes of {name}".encode()


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "root"
    for name in NAMES + NO_PICTURES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content(name))
    (root / "empty").mkdir()
    return root


def member(name, data=b"", **fields):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def packed(path, members):
    with tarfile.open(path, "w") as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return path


OTHER = member("b/2.png", b"other")


@pytest.fixture
def archive(tmp_path):
    names = [f"./{name}" if i % 2 else name for i, name in enumerate(NAMES + NO_PICTURES)]
    members = [member(name, content(name.removeprefix("./"))) for name in names]
    return packed(tmp_path / "some.tar", [member("empty", type=tarfile.DIRTYPE), *members])


# -- what is found -------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["folder", "archive"])
def test_pictures_in_order_with_the_names_of_their_folders(source, request):
    found = image_folder(request.getfixturevalue(source))
    assert isinstance(found, Examples)
    assert found.ids.tolist() == ORDER
    assert found.labels.tolist() == LABELS
    assert found.X.shape == (4,)
    assert [one.name for one in found.X] == ORDER
    assert [one.read() for one in found.X] == [content(name) for name in ORDER]


@pytest.mark.parametrize("source", ["folder", "archive"])
def test_pictures_are_examples_like_others(source, request):
    found = image_folder(request.getfixturevalue(source)).apply(Remove(("a/2.png",)))
    assert found.ids.tolist() == [name for name in ORDER if name != "a/2.png"]
    (one,) = found.X[found.rows(("a/10.png",))]
    assert one.read() == content("a/10.png")


@pytest.mark.parametrize("source", ["folder", "archive"])
def test_pictures_can_be_read_in_threads_and_elsewhere(source, request):
    X = image_folder(request.getfixturevalue(source)).X
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda one: one.read(), list(X) * 20))
    assert found == [content(name) for name in ORDER] * 20
    assert [one.read() for one in pickle.loads(pickle.dumps(list(X)))] == found[:4]


def test_outside_all_folders_there_is_no_label(tmp_path):
    (tmp_path / "1.png").touch()
    assert image_folder(tmp_path).labels.tolist() == [""]


def test_the_last_of_one_name_counts_in_an_archive(tmp_path):
    path = packed(tmp_path / "some.tar", [member("a/1.png", b"old"), member("./a/1.png", b"new")])
    (one,) = image_folder(path).X
    assert one.read() == b"new"


@pytest.mark.parametrize("link_last", [True, False])
def test_the_last_of_one_name_counts_also_where_it_is_no_file(tmp_path, link_last):
    link = member("a/1.png", type=tarfile.SYMTYPE, linkname="2.png")
    both = [member("a/1.png", b"bytes"), link]
    found = listing(packed(tmp_path / "some.tar", [*both[:: 1 if link_last else -1], OTHER]))
    names = ["b/2.png"] if link_last else ["a/1.png", "b/2.png"]
    assert [one.name for one in found.pictures] == names
    assert found.skipped == ({"a/1.png": "is a link"} if link_last else {})


def test_a_link_to_itself_is_no_file(folder):
    (folder / "a" / "loop.png").symlink_to("loop.png")
    assert listing(folder).skipped["a/loop.png"] == "is not a file"


def test_a_list_may_begin_with_a_mark_and_hold_any_line(folder, tmp_path):
    (tmp_path / "list.txt").write_text("\ufeffroot/a/2.png\r\n" + "x" * 300, encoding="utf-8")
    found = listing(tmp_path / "list.txt")
    assert [one.name for one in found.pictures] == ["root/a/2.png"]
    assert found.skipped == {"x" * 300: "is not a file"}


def test_a_list_names_pictures_anywhere(folder, tmp_path):
    text = f"root/a/2.png\n\n{folder / 'a' / '10.png'}\nroot/nowhere.png\n"
    (tmp_path / "list.txt").write_text(text)
    found = listing(tmp_path / "list.txt")
    assert [one.read() for one in found.pictures] == [content("a/10.png"), content("a/2.png")]
    assert [one.label for one in found.pictures] == ["a", "a"]
    assert found.skipped == {"root/nowhere.png": "is not a file"}


# -- what is refused -----------------------------------------------------------------------------


def test_one_picture_of_an_archive(archive, folder, tmp_path):
    for one in listing(archive).pictures:
        assert picture_in(archive, one.name) == one
    for name in ("none.png", "../secret.png", "/etc/passwd"):
        assert picture_in(archive, name) is None
    (tmp_path / "list.txt").write_text(f"{folder}/{NAMES[0]}\n")
    assert picture_in(tmp_path / "list.txt", f"{folder}/{NAMES[0]}") is None
    assert picture_in(tmp_path / "none", "1.png") is None


def test_links_that_lead_outside_are_not_followed(folder, tmp_path):
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "1.png").write_bytes(b"secret")
    (folder / "a" / "out.png").symlink_to(tmp_path / "secret.png")
    (folder / "a" / "up.png").symlink_to("../../secret.png")
    (folder / "a" / "in.png").symlink_to("2.png")
    (folder / "a" / "broken.png").symlink_to("none.png")
    (folder / "linked").symlink_to(tmp_path / "secrets")
    os.mkfifo(folder / "a" / "pipe.png")
    found = listing(folder)
    assert found.skipped == {
        "a/broken.png": "is not a file",
        "a/out.png": "is a link that leads outside",
        "a/pipe.png": "is not a file",
        "a/up.png": "is a link that leads outside",
        "linked": "is a link to a folder",
    }
    read = {one.name: one.read() for one in found.pictures}
    assert read == {name: content(name) for name in ORDER} | {"a/in.png": content("a/2.png")}
    for name in [*found.skipped, *read, *NO_PICTURES, "../secret.png", f"{tmp_path}/secret.png"]:
        one = picture_in(folder, name)
        assert (None if one is None else one.read()) == read.get(name)
    assert picture_in(folder, "a/\0.png") is None
    assert picture_in(folder, "x" * 5000 + ".png") is None
    words = (
        f"{str(folder)!r} has 5 file(s) that are not read. The first, 'a/broken.png', is not a "
        f"file. Remove or replace them."
    )
    with pytest.raises(InvalidInput, match=re.escape(words)):
        image_folder(folder)


def test_an_archive_cannot_lead_outside_itself(tmp_path):
    sparse = member("a/sparse.png", type=tarfile.GNUTYPE_SPARSE)
    path = packed(
        tmp_path / "some.tar",
        [
            member("a/1.png", b"fine"),
            member("../up.png", b"no"),
            member("a/../../up.png", b"no"),
            member("/etc/passwd.png", b"no"),
            member("a/soft.png", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
            member("a/hard.png", type=tarfile.LNKTYPE, linkname="a/1.png"),
            member("a/device.png", type=tarfile.CHRTYPE, devmajor=1, devminor=5),
            member("a/pipe.png", type=tarfile.FIFOTYPE),
            sparse,
        ],
    )
    found = listing(path)
    assert [one.name for one in found.pictures] == ["a/1.png"]
    assert found.skipped == {
        "../up.png": "has a name that leads outside",
        "a/../../up.png": "has a name that leads outside",
        "/etc/passwd.png": "has a name that leads outside",
        "a/soft.png": "is a link",
        "a/hard.png": "is a link",
        "a/device.png": "is not a file",
        "a/pipe.png": "is not a file",
        "a/sparse.png": "is stored with holes",
    }
    words = r"has 8 file\(s\) that are not read\. The first, '\.\./up.png', has a name that leads"
    with pytest.raises(InvalidInput, match=words):
        image_folder(path)


def test_names_that_are_not_utf8_are_skipped(folder):
    strange = b"a/\xff.png"
    Path(os.fsdecode(os.fsencode(folder) + b"/" + strange)).touch()
    found = listing(folder)
    assert found.skipped == {os.fsdecode(strange): "has a name that is not UTF-8"}
    assert [one.name for one in found.pictures] == ORDER


def test_names_are_the_same_in_every_language_of_the_terminal(folder):
    code = (
        "import sys\nfrom knowmore.images import image_folder\n"
        "for one in image_folder(sys.argv[1]).X: print(ascii(one.name), len(one.read()))"
    )
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    found = subprocess.run(
        [sys.executable, "-c", code, folder],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | plain,
    )
    want = [f"{name!a} {len(content(name))}" for name in ORDER]
    assert found.stdout.splitlines() == want


def test_damaged_archives_are_refused(archive, tmp_path):
    whole = archive.read_bytes()
    (one, *_) = image_folder(archive).X
    damaged = {
        "cut in a member": whole[: one.offset + 5],
        "cut between members": whole[: one.offset - tarfile.BLOCKSIZE],
        "overwritten": whole[: one.offset - tarfile.BLOCKSIZE] + b"x" * 5000,
        "no archive": b"x" * 5000,
        "empty": b"",
    }
    for name, data in damaged.items():
        path = tmp_path / f"{name}.tar"
        path.write_bytes(data)
        with pytest.raises(InvalidInput, match="cannot be read as a tar archive: "):
            image_folder(path)


def test_any_damage_of_an_archive_is_reported(archive):
    whole = archive.read_bytes()
    for data in mutants(whole, np.random.default_rng(0), 300, keep=0):
        archive.write_bytes(data)
        try:
            found = listing(archive)
        except InvalidInput as error:
            assert str(archive) in str(error)  # noqa: PT017  it is one of two outcomes
        else:
            assert all(one.size <= len(data) for one in found.pictures)


def test_compressed_archives_are_refused(folder, tmp_path):
    path = tmp_path / "some.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, "root")
    words = "If it is compressed, unpack it to .tar first."
    for load in image_folder, listing:
        with pytest.raises(InvalidInput, match=re.escape(words)):
            load(path)


def test_no_pictures(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "notes.txt").touch()
    words = f"There is no picture in {str(tmp_path)!r}. Names of pictures end in .bmp, .gif, "
    with pytest.raises(InvalidInput, match=re.escape(words)):
        image_folder(tmp_path)
    (tmp_path / "a" / "1.png").symlink_to("/etc/passwd")
    with pytest.raises(InvalidInput, match=r"Skipped: 'a/1.png' is a link that leads outside\."):
        image_folder(tmp_path)


def test_no_source(tmp_path):
    with pytest.raises(MissingData, match=r"There is no file or folder '.*nowhere'\. Check the"):
        image_folder(tmp_path / "nowhere")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="is neither a folder, nor a tar archive, nor a list"):
        listing(tmp_path / "binary")
    (tmp_path / "twice.txt").write_text("a.png\nb.png\na.png\n")
    with pytest.raises(RepeatedId, match=r"lists 'a\.png' more than once\."):
        listing(tmp_path / "twice.txt")


def test_what_changed_since_is_reported(archive):
    (one, *_) = image_folder(archive).X
    os.truncate(archive, one.offset + 3)
    with pytest.raises(
        InvalidInput, match=r"^'a/10.png' is cut off: .* has changed. List it again"
    ):
        one.read()


def test_files_too_large_for_a_picture_are_not_read(tmp_path):
    path = tmp_path / "large.png"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(InvalidInput, match=r"^'large.png' has 268,435,457 bytes, more than the"):
        Picture("large.png", path).read()


@pytest.mark.parametrize(
    ("label", "want"),
    [
        (-1, LABELS),
        (0, ["a", "a", "b c", "deep"]),
        (lambda one: one[0], ["a", "a", "b", "d"]),
        (lambda one: len(one), [8, 7, 15, 14]),
    ],
    ids=["nearest", "outermost", "function", "numbers"],
)
def test_the_label_is_any_folder_or_a_function_of_the_id(folder, label, want):
    assert image_folder(folder, label=label).labels.tolist() == want


def test_a_folder_that_is_not_there_is_reported(folder):
    words = (
        "label=1, but 'a/10.png' is in 1 folder(s). Count from 0, the outermost, or back from -1, "
        "the nearest; or give a function of the name."
    )
    with pytest.raises(InvalidInput) as caught:
        image_folder(folder, label=1)
    assert str(caught.value) == words
    with pytest.raises(TypeError, match=r"label is a str. Give a whole number, or a function of"):
        image_folder(folder, label="a")
