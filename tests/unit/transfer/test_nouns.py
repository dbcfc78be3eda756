"""WordNet's places, and its cache."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
from damage import mutants
from small_wordnet import Entry, Small

from knowmore.errors import InvalidInput, KnowmoreError, MissingData
from knowmore.semantics import WordNet
from knowmore.transfer import nouns as room

SMALL = Small([Entry(["entity"]), Entry(["dog"], [0], gloss="it barks"), Entry(["cat"], [0])])
OTHER = Small([Entry(["entity"]), Entry(["dog"], [0], gloss="it purrs"), Entry(["cat"], [0])])


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "knowmore"


def gloss(path):
    return WordNet.load(path, information="intrinsic").synsets("dog")[0].gloss


# -- where it is ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "mode"), [("tar", "w"), ("tar.xz", "w:xz"), ("tar.gz", "w:gz"), ("tar.bz2", "w:bz2")]
)
def test_archives_are_as_good_as_folders(tmp_path, end, mode):
    packed = WordNet.load(SMALL.pack(tmp_path, end, mode), information="ic-small")
    loose = WordNet.load(str(tmp_path / "loose"), information="ic-small")
    assert packed.synsets("dog") == loose.synsets("dog")
    np.testing.assert_array_equal(packed.content, loose.content)


def test_princetons_folders_are_known(tmp_path):
    SMALL.write(tmp_path / "dict")
    assert gloss(tmp_path) == "it barks"


def test_data_sets_come_first_then_debian(tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    monkeypatch.setattr(room, "DEBIAN", tmp_path / "debian")
    words = (
        f"WordNet was not found: {room.ARCHIVE} is not in '{tmp_path}', the folder "
        f"KNOWMORE_DATA, and Debian's wordnet-base is not in '{tmp_path / 'debian'}'. Set "
        f"KNOWMORE_DATA to a folder that holds {room.ARCHIVE}, install wordnet-base, or call "
        f"WordNet.load(path)."
    )
    with pytest.raises(MissingData, match=f"^{re.escape(words)}$"):
        gloss(None)
    with monkeypatch.context() as unset:
        unset.delenv("KNOWMORE_DATA")
        with pytest.raises(MissingData, match="not found: KNOWMORE_DATA is not set, and Debian's"):
            gloss(None)
    OTHER.write(tmp_path / "debian")
    assert gloss(None) == "it purrs"
    SMALL.pack(tmp_path, "tar.xz", "w:xz").rename(tmp_path / room.ARCHIVE)
    assert gloss(None) == "it barks"


def test_a_path_must_lead_there(tmp_path):
    path = str(tmp_path / "nowhere")
    words = f"WordNet was not found in {path!r}. There is no such file or folder."
    with pytest.raises(MissingData, match=f"^{re.escape(words)}$"):
        gloss(path)


def test_a_folder_must_have_the_files(tmp_path):
    (SMALL.write(tmp_path) / "noun.exc").unlink()
    words = (
        f"WordNet was not found in {str(tmp_path)!r}. It has no noun.exc. Name a folder or "
        f"archive with data.noun, index.noun, noun.exc."
    )
    with pytest.raises(MissingData, match=f"^{re.escape(words)}$"):
        gloss(tmp_path)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6])
@pytest.mark.parametrize(("end", "mode"), [("tar.xz", "w:xz"), ("tar.gz", "w:gz")])
def test_truncated_archives_are_refused(tmp_path, end, mode, part):
    path = SMALL.pack(tmp_path, end, mode)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(
        InvalidInput, match=r"cannot be read as WordNet\. It may be cut off or damaged: \w"
    ):
        gloss(path)


@pytest.mark.parametrize(
    ("end", "mode"), [("tar", "w"), ("tar.xz", "w:xz"), ("tar.gz", "w:gz"), ("tar.bz2", "w:bz2")]
)
def test_damaged_archives_are_refused_or_read(tmp_path, end, mode):
    path = SMALL.pack(tmp_path, end, mode)
    refused = 0
    for data in mutants(path.read_bytes(), np.random.default_rng(0), 60):
        path.write_bytes(data)
        try:
            WordNet.load(path, information="intrinsic")
        except KnowmoreError:
            refused += 1
    assert refused > 20


def test_files_that_are_not_text_are_refused(tmp_path):
    (SMALL.write(tmp_path) / "data.noun").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(
        InvalidInput, match=r"cannot be read as WordNet\. It may be cut off or damaged: .* decode"
    ):
        gloss(tmp_path)


def test_errors_in_a_file_name_the_path(tmp_path):
    (SMALL.write(tmp_path) / "index.noun").write_text("dog n one\n")
    words = (
        f"{str(tmp_path)!r} cannot be read as WordNet. It may be cut off or damaged: index.noun, "
        f"line 1: not as WordNet"
    )
    with pytest.raises(InvalidInput, match=f"^{re.escape(words)}"):
        gloss(tmp_path)


# -- the cache -----------------------------------------------------------------------------------


@pytest.fixture
def parsed(monkeypatch):
    """The files that were read, each time they were."""
    calls, parse = [], room.parse
    monkeypatch.setattr(room, "parse", lambda texts: (calls.append(texts), parse(texts))[1])
    return calls


def everything(nouns):
    values = {field.name: getattr(nouns, field.name) for field in fields(nouns)}
    return {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in values.items()
    }


def test_a_cached_database_is_not_parsed_again(tmp_path, parsed, cache):
    path = SMALL.write(tmp_path / "wordnet")
    first, second = (WordNet.load(path, information="ic-small") for _ in range(2))
    assert len(parsed) == 1
    assert everything(second.nouns) == everything(first.nouns)
    (kept,) = cache.iterdir()
    assert re.fullmatch(r"wordnet-[0-9a-f]{32}\.npz", kept.name)


def test_a_moved_database_is_cached_and_a_changed_one_is_not(tmp_path, parsed):
    path = SMALL.write(tmp_path / "wordnet")
    assert gloss(path) == "it barks"
    path = path.rename(tmp_path / "moved")
    assert gloss(path) == "it barks"
    assert len(parsed) == 1
    # As long, and as old.
    data, was = path / "data.noun", (path / "data.noun").stat()
    OTHER.write(path)
    os.utime(data, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert data.stat().st_size == was.st_size
    assert gloss(path) == "it purrs"


def damages(content: bytes) -> dict[str, bytes]:
    middle = len(content) // 2
    return {
        "empty": b"",
        "half": content[:middle],
        "all but the end": content[:-1],
        "one letter": content.replace(b"it barks", b"it marks"),
        "another file": b"not a zip file at all",
    }


@pytest.mark.parametrize("kind", list(damages(b"--")))
def test_a_damaged_cache_is_replaced(tmp_path, parsed, cache, kind):
    path = SMALL.write(tmp_path / "wordnet")
    gloss(path)
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(damages(whole)[kind])
    assert gloss(path) == "it barks"
    assert len(parsed) == 2
    assert gloss(path) == "it barks"
    assert len(parsed) == 2
    assert list(cache.iterdir()) == [kept]


def test_a_cache_of_other_content_is_replaced(tmp_path, parsed, cache):
    path = SMALL.write(tmp_path / "wordnet")
    gloss(path)
    (kept,) = cache.iterdir()
    np.savez(kept, about=np.array('{"kind": "WordNet", "version": 1, "settings": {}}'))
    assert gloss(path) == "it barks"
    assert len(parsed) == 2


def test_without_a_place_to_write_there_is_no_cache(tmp_path, parsed, monkeypatch):
    path = SMALL.write(tmp_path / "wordnet")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert [gloss(path) for _ in range(2)] == ["it barks"] * 2
    assert len(parsed) == 2


def test_a_full_disk_leaves_no_part_of_a_cache(tmp_path, cache, little_room):
    path = SMALL.write(tmp_path / "wordnet")
    with little_room(1000):
        assert gloss(path) == "it barks"
    assert list(cache.iterdir()) == []


def test_without_a_home_there_is_no_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert gloss(SMALL.write(tmp_path / "wordnet")) == "it barks"


def test_images_are_not_imported():
    code = "import sys, knowmore.semantics; print([m for m in sys.modules if 'images' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
