"""Files are written wholly or not at all, and damage in what is read is reported in words."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from damage import fewer_rows

from knowmore._base import (
    Arrays,
    check_folder,
    check_writable,
    load,
    save,
    undamaged,
    user_folder,
    written,
)
from knowmore.errors import InvalidInput, KnowmoreError, MissingData, NotWritten


def write(path, content=b"new"):
    with written(path) as file:
        file.write(content)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    old = os.umask(0o027)
    yield 0o027
    os.umask(old)


# -- what is written -----------------------------------------------------------------------------


def test_a_new_file_has_the_mode_that_the_user_wants(tmp_path, umask):
    write(tmp_path / "file")
    assert mode(tmp_path / "file") == 0o666 & ~umask
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.parametrize("old", [0o600, 0o640, 0o666, 0o755])
def test_a_file_that_was_there_keeps_its_mode(tmp_path, umask, old):
    path = tmp_path / "file"
    path.touch()
    path.chmod(old)
    with written(path) as file:
        # Nor may anybody look at it meanwhile.
        (part,) = (each for each in tmp_path.iterdir() if each != path)
        assert mode(part) == old
        file.write(b"new")
    assert mode(path) == old
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("steps", [1, 3])
def test_a_link_stays_a_link(tmp_path, steps):
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "target"
    target.write_bytes(b"old")
    target.chmod(0o600)
    link = target
    for step in range(steps):
        (tmp_path / f"link {step}").symlink_to(link)
        link = tmp_path / f"link {step}"
    check_writable(link)
    write(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert mode(target) == 0o600
    assert [each.name for each in target.parent.iterdir()] == ["target"]


def test_a_link_to_nothing_yet_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_whoever_raises_changes_nothing(tmp_path):
    path = tmp_path / "file"
    write(path, b"old")
    with pytest.raises(ZeroDivisionError), written(path) as file:
        file.write(b"half" * (1 // 0))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_no_room_is_reported_and_changes_nothing(tmp_path, little_room):
    path = tmp_path / "file"
    write(path, b"old")
    words = (
        f"{str(path)!r} cannot be written: File too large. What was there before is kept. "
        f"Name another place."
    )
    with little_room(1000), pytest.raises(NotWritten, match=f"^{re.escape(words)}$") as caught:
        write(path, b"new" * 1000)
    assert isinstance(caught.value, KnowmoreError)
    assert isinstance(caught.value, OSError)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_reported(tmp_path):
    """A file system of its own, of a few kilobytes."""
    code = f"""
from contextlib import suppress
from pathlib import Path
import numpy as np
from knowmore.errors import NotWritten
from knowmore._base import check_folder, save

disk = Path({str(tmp_path)!r})

def report(ask, *arguments):
    try:
        ask(*arguments)
    except NotWritten as error:
        print(str(error).replace(str(disk), "DISK"))

report(save, disk / "large.npz", "Kind", {{}}, {{"x": np.ones(10_000)}})
print(list(disk.iterdir()))
with suppress(OSError), open(disk / "all", "wb", buffering=0) as file:
    while file.write(bytes(100)):
        pass
report(check_folder, disk)
"""
    mount = f'mount -t tmpfs -o size=64k none {tmp_path} || exit 77; exec "$0" -c "$1"'
    command = ["unshare", "--mount", "sh", "-c", mount, sys.executable, code]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode == 77 or run.stderr.startswith("unshare"):
        pytest.skip(f"no file system can be mounted here: {run.stderr.strip()}")
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "'DISK/large.npz' cannot be written: No space left on device. What was there before is "
        "kept. Name another place.",
        "[]",
        "'DISK' cannot be written: No space left on device. What was there before is kept. "
        "Name another place.",
    ]


# -- what is found out before --------------------------------------------------------------------


def bad_places(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/full")
    (tmp_path / "taken").touch()
    (tmp_path / "loop").symlink_to("loop")
    return {
        "folder": "not a regular file",
        "pipe": "not a regular file",
        "device": "not a regular file",
        "taken/file": "Not a directory",
        "nowhere/file": "No such file or directory",
        "loop": "",
    }


def test_what_cannot_be_written_is_found_out_before(tmp_path):
    for name, why in bad_places(tmp_path).items():
        path = tmp_path / name
        for ask in check_writable, write:
            words = rf"^{re.escape(repr(str(path)))} cannot be written: .*{why}.*\. What was there"
            with pytest.raises(NotWritten, match=words):
                ask(path)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_to_find_out_leaves_nothing_behind(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    check_writable(tmp_path / "file")
    check_writable(tmp_path / "new")
    check_folder(tmp_path / "a" / "b")
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["a", "b", "file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_folder_that_cannot_be_written_to_is_reported(tmp_path):
    """Even for root: the kernel's own folders."""
    (tmp_path / "file").touch()
    for path in tmp_path / "file", tmp_path / "file" / "folder", Path("/sys/kernel"):
        if not path.exists() and path.parts[1] == "sys":
            continue
        words = rf"^{re.escape(repr(str(path)))} cannot be written: .*\. What was there before"
        with pytest.raises(NotWritten, match=words):
            check_folder(path)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_files_are_not_replaced(tmp_path):
    path = tmp_path / "file"
    path.touch(mode=0o444)
    for ask in check_writable, write:
        with pytest.raises(NotWritten, match="it exists and is read-only"):
            ask(path)


# -- what is read --------------------------------------------------------------------------------


def test_the_end_of_every_array_is_looked_at(tmp_path):
    path = tmp_path / "file.npz"
    save(path, "Kind", {}, {"x": np.ones((5000, 3))})
    start = path.read_bytes().index(b"x.npy")
    data = path.read_bytes()
    path.write_bytes(data[:start] + fewer_rows(data[start:]))
    with np.load(path) as file:
        assert len(file["x"]) == 1  # NumPy does not notice.
    with pytest.raises(InvalidInput, match="cannot be read as a Kind: it is damaged"):
        load(path, "Kind", lambda settings, arrays: arrays)


def test_arrays_by_their_names(tmp_path):
    np.savez_compressed(tmp_path / "file.npz", a=np.arange(3), b=np.array("text"))
    with Arrays(tmp_path / "file.npz") as arrays:
        assert list(arrays) == ["a", "b"]
        assert arrays["a"].tolist() == [0, 1, 2]
        assert str(arrays["b"]) == "text"
        with pytest.raises(KeyError):
            arrays["c"]


def test_interrupts_pass_through():
    with pytest.raises(KeyboardInterrupt), undamaged("file", "a Kind", "it is damaged."):
        raise KeyboardInterrupt


def test_without_a_home_there_is_no_folder_for_caches(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(MissingData, match=r"this user has no home\. Set XDG_CACHE_HOME to one"):
        user_folder()
