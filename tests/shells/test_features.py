"""`knowmore features`, as a user meets it."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from typing import get_args

import numpy as np
import pytest
from typer.testing import CliRunner

from knowmore import cli
from knowmore._base import missing_extra
from knowmore.cli.app import app
from knowmore.cli.options import Pictures
from knowmore.errors import KnowmoreError, MissingData
from knowmore.images import PHOG, KMeansCodebook, feature_table, image_folder
from knowmore.images.extraction import BLOCK, KINDS, WORDED
from papers.data import find

Image = pytest.importorskip("PIL.Image", reason="needs the extra images")
pytest.importorskip("cv2", reason="needs the extra images")

N = 2 * BLOCK + 4


def encoded(seed):
    file = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (40, 56), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def folder(tmp_path):
    for i in range(N):
        path = tmp_path / "pictures" / f"class {i % 3}" / f"é {i:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(i))
    return tmp_path / "pictures"


@pytest.fixture(autouse=True)
def users_cache(tmp_path, monkeypatch):
    """The cache of the user who runs the tests stays as it is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    return tmp_path / "users" / "knowmore" / "features.sqlite"


def features(*arguments):
    return CliRunner().invoke(app, ["features", *map(str, arguments)])


def refused(*arguments):
    """The words with which the command refuses."""
    error = features(*arguments).exception
    assert isinstance(error, KnowmoreError), error
    return str(error)


def loaded(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def run_apart(code, *arguments):
    """The command in a process of its own, after `code`."""
    script = f"import sys\n{code}\nfrom knowmore.cli import main\nmain()"
    return subprocess.run(
        [sys.executable, "-c", script, "features", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


# -- what is written -----------------------------------------------------------------------------


def test_the_table_has_ids_labels_and_features(folder, tmp_path):
    result = features(folder, "-o", tmp_path / "out.npz", "--kind", "phog")
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        f"{N} pictures of 1700 numbers each ({N} computed now, 0 known), 0 skipped.\n"
        f"Written: {tmp_path / 'out.npz'}\n"
    )
    found, want = loaded(tmp_path / "out.npz"), image_folder(folder)
    np.testing.assert_array_equal(found["ids"], want.ids)
    np.testing.assert_array_equal(found["labels"], want.labels)
    np.testing.assert_array_equal(found["features"], PHOG().transform(want.X))
    (step,) = json.loads(str(found["about"]))["steps"]
    assert step[0] == "PHOG"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.npz", "pictures", "users"]


def test_both_forms_of_the_table_are_the_same(folder, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra tables")
    for name in "out.npz", "out.parquet":
        result = features(folder, "-o", tmp_path / name, "--kind", "bow", "--words", 8)
        assert result.exit_code == 0, result.output
    arrays, table = loaded(tmp_path / "out.npz"), parquet.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["ids", "labels", "features"]
    assert table["ids"].to_pylist() == arrays["ids"].tolist()
    assert table["labels"].to_pylist() == arrays["labels"].tolist()
    assert table["features"].to_pylist() == arrays["features"].tolist()
    assert table.schema.metadata[b"about"].decode() == str(arrays["about"])


def test_folder_archive_and_list_give_the_same(folder, tmp_path):
    with tarfile.open(tmp_path / "some.tar", "w") as archive:
        archive.add(folder, ".")
    ids = image_folder(folder).ids.tolist()
    (folder / "list.txt").write_text("\n".join(reversed(ids)))
    tables = []
    for source in folder, tmp_path / "some.tar", folder / "list.txt":
        result = features(source, "-o", tmp_path / "out.npz", "--kind", "phog")
        assert result.exit_code == 0, result.output
        tables.append(loaded(tmp_path / "out.npz"))
    assert f"({0} computed now, {N} known)" in result.stdout
    for table in tables:
        for name, array in table.items():
            np.testing.assert_array_equal(array, tables[0][name], err_msg=name)


def test_words_are_saved_for_later_pictures(folder, tmp_path):
    words = tmp_path / "words.npz"
    common = "-o", tmp_path / "out.npz"
    result = features(folder, *common, "--words", 8, "--save-codebook", words)
    assert result.exit_code == 0, result.output
    assert KMeansCodebook.load(words).vocabulary_.size == 8
    first = loaded(tmp_path / "out.npz")
    (folder / "class 0" / "new.png").write_bytes(encoded(99))
    result = features(folder, *common, "--codebook", words)
    assert result.exit_code == 0, result.output
    assert f"(1 computed now, {N} known)" in result.stdout
    now = loaded(tmp_path / "out.npz")
    old = now["ids"] != "class 0/new.png"
    np.testing.assert_array_equal(now["features"][old], first["features"])


def test_where_the_cache_is(folder, tmp_path, users_cache):
    out = "-o", tmp_path / "out.npz", "--kind", "phog"
    assert features(folder, *out, "--no-cache").exit_code == 0
    assert not users_cache.exists()
    assert features(folder, *out, "--cache", tmp_path / "my").exit_code == 0
    assert (tmp_path / "my" / "features.sqlite").is_file()
    assert not users_cache.exists()
    assert features(folder, *out).exit_code == 0
    assert users_cache.is_file()


def test_skipped_pictures_are_listed_and_change_the_exit_code(folder, tmp_path):
    (folder / "class 1" / "broken.jpg").write_bytes(b"no picture")
    (folder / "class 1" / "link.jpg").symlink_to("/etc/passwd")
    (folder / "class 1" / "wrong.jpg").write_bytes(encoded(77))
    result = features(folder, "-o", tmp_path / "out.npz", "--kind", "phog")
    assert result.exit_code == 3
    assert [line.split(":")[:2] for line in result.stderr.splitlines() if line] == [
        ["Skipped", " 'class 1/broken.jpg' cannot be read"],
        ["Skipped", " 'class 1/link.jpg' is a link that leads outside"],
    ]
    assert f"({N + 1} computed now, 0 known), 2 skipped.\n" in result.stdout
    again = features(folder, "-o", tmp_path / "out.npz", "--kind", "phog")
    assert f"{N + 1} pictures of 1700 numbers each (0 computed now, {N + 1} known)" in again.stdout
    found = loaded(tmp_path / "out.npz")
    # A PNG by the name of a JPEG is a picture all the same.
    assert found["ids"].tolist() == image_folder_without_links(folder)
    assert len(found["features"]) == len(found["labels"]) == N + 1


def image_folder_without_links(folder):
    (folder / "class 1" / "link.jpg").unlink()
    return [name for name in image_folder(folder).ids if name != "class 1/broken.jpg"]


# -- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_killed_command_resumes(folder, tmp_path):
    out = folder, "-o", tmp_path / "out.npz", "--kind", "phog", "--jobs", 1
    killed = run_apart(
        "import os, signal\n"
        "from knowmore.images import PHOG\n"
        "transform, blocks = PHOG.transform, []\n"
        "def kill(self, X):\n"
        "    if len(blocks) == 2: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    blocks.append(X)\n"
        "    return transform(self, X)\n"
        "PHOG.transform = kill",
        *out,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "out.npz").exists()
    again = run_apart("", *out)
    assert again.returncode == 0, again.stderr
    assert f"({N - 2 * BLOCK} computed now, {2 * BLOCK} known)" in again.stdout
    want = PHOG().transform(image_folder(folder).X)
    np.testing.assert_array_equal(loaded(tmp_path / "out.npz")["features"], want)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["npz", "parquet"])
def test_a_full_disk_is_reported_and_leaves_the_old_table(form, folder, tmp_path):
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="needs the extra tables")
    out = tmp_path / f"out.{form}"
    out.write_bytes(b"the old table")
    # No file may grow beyond this: writing past it fails, as on a full disk.
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))"
    result = run_apart(limit, folder, "-o", out, "--kind", "phog", "--no-cache")
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1] == (
        f"knowmore: {str(out)!r} cannot be written: File too large. What was there before is "
        f"kept. Name another place."
    )
    assert "Traceback" not in result.stderr
    assert out.read_bytes() == b"the old table"
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name, "pictures"]


@pytest.mark.slow
def test_the_table_is_written_although_the_pipe_is_closed(folder, tmp_path):
    (folder / "class 1" / "broken é.jpg").write_bytes(b"no picture")
    command = [sys.executable, "-c", "from knowmore.cli import main; main()", "features", folder]
    run = subprocess.Popen(
        [*command, "-o", tmp_path / "out.npz", "--kind", "phog"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    run.stdout.close()
    _, errors = run.communicate(timeout=120)
    # Not 1: only a picture was skipped.
    assert run.returncode == 3
    assert b"Skipped: 'class 1/broken \\xe9.jpg' cannot be read: it is not a picture" in errors
    assert len(feature_table(tmp_path / "out.npz")) == N


def test_a_link_stays_a_link_and_a_mode_stays(folder, tmp_path):
    target = tmp_path / "elsewhere.npz"
    target.touch(mode=0o600)
    (tmp_path / "out.npz").symlink_to(target)
    assert features(folder, "-o", tmp_path / "out.npz", "--kind", "phog").exit_code == 0
    assert (tmp_path / "out.npz").is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600
    assert len(feature_table(target)) == N


def test_a_user_without_a_home_is_told_to_name_a_cache(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert "this user has no home" in refused(folder, "-o", tmp_path / "o.npz", "--kind", "phog")


@pytest.mark.slow
def test_a_cache_without_room_is_reported(folder, tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))"
    result = run_apart(limit, folder, "-o", tmp_path / "out.npz", "--kind", "phog")
    assert result.returncode == 2
    (words,) = filter(None, result.stderr.splitlines())
    assert words.startswith("knowmore: The cache '")
    assert words.endswith("Name another folder, or use no cache.")
    assert not (tmp_path / "out.npz").exists()


def test_wrong_options_are_refused_before_the_work(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("knowmore.cli.features.listing", None)
    assert "'out.csv' must end in .npz or .parquet" in refused(folder, "-o", "out.csv")
    nowhere = tmp_path / "nowhere" / "out.npz"
    assert "cannot be written: No such file or directory." in refused(folder, "-o", nowhere)
    (tmp_path / "taken.npz").mkdir()
    assert "it exists and is not a regular file" in refused(folder, "-o", tmp_path / "taken.npz")
    out = "-o", tmp_path / "x.npz"
    for option in "--codebook", "--save-codebook":
        words = refused(folder, *out, option, tmp_path / "." / "x.npz")
        assert "cannot be both table and codebook. Name two files." in words
    words = refused(folder, *out, "--save-codebook", nowhere)
    assert "cannot be written: No such file or directory." in words
    (tmp_path / "x.words.npz").mkdir()
    assert "x.words.npz' cannot be written: " in refused(folder, *out, "--words", 9)
    words = refused(folder, *out, "--kind", "phog", "--codebook", "w.npz", "--words", 9)
    assert words == ("--words asks for new words, --codebook for saved ones. Leave one out.")
    words = refused(folder, *out, "--kind", "phog", "--codebook", "w.npz", "--save-codebook", "v")
    assert words == ("--kind phog has no visual words. Leave --codebook and --save-codebook out.")
    assert "Leave --words out" in refused(folder, *out, "--kind", "embedding", "--words", 9)
    words = refused(folder, *out, "--like", "t.npz", "--kind", "bow", "--longest", 99)
    assert words == ("--like settles how features are made. Leave --kind and --longest out.")
    assert "The file 't.npz' does not exist." in refused(folder, *out, "--like", "t.npz")


# -- words, and what can be compared -------------------------------------------------------------


@pytest.fixture
def others(tmp_path):
    for i in range(5):
        path = tmp_path / "others" / "class 0" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(100 + i))
    return tmp_path / "others"


FORMS = [
    "npz",
    pytest.param(
        "parquet",
        marks=pytest.mark.skipif(find_spec("pyarrow") is None, reason="needs the extra tables"),
    ),
]


def test_new_words_are_saved_beside_the_table_and_named(folder, tmp_path):
    result = features(folder, "-o", tmp_path / "out.npz", "--kind", "bow", "--words", 8)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1:] == [
        f"Written: {tmp_path / 'out.npz'}",
        f"New visual words: {tmp_path / 'out.words.npz'}",
        f"Only features in the same words can be compared. For pictures to come: knowmore features "
        f"... --like {tmp_path / 'out.npz'}",
    ]
    assert KMeansCodebook.load(tmp_path / "out.words.npz").vocabulary_.size == 8
    elsewhere = features(folder, "-o", tmp_path / "b.npz", "--save-codebook", tmp_path / "w.npz")
    assert f"--like {tmp_path / 'b.npz'} --codebook {tmp_path / 'w.npz'}\n" in elsewhere.stdout
    assert not (tmp_path / "b.words.npz").exists()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["bow", "phog"])
def test_a_table_like_another_can_be_compared_with_it(form, kind, folder, others, tmp_path):
    old, new = tmp_path / f"old.{form}", tmp_path / f"new.{form}"
    words = ["--words", 8] if kind == "bow" else []
    made = features(folder, "-o", old, "--kind", kind, "--longest", 50, *words)
    assert made.exit_code == 0, made.output
    result = features(others, "-o", new, "--like", old)
    assert result.exit_code == 0, result.output
    assert "New visual words" not in result.stdout
    found = feature_table(new, like=old)
    assert found.ids.tolist() == image_folder(others).ids.tolist()
    assert found.labels.tolist() == ["class 0"] * 5
    # Also with the words of a table that was made so, or with words that lie elsewhere.
    assert features(others, "-o", tmp_path / f"third.{form}", "--like", new).exit_code == 0
    np.testing.assert_array_equal(feature_table(tmp_path / f"third.{form}", like=new).X, found.X)


@pytest.mark.parametrize("form", FORMS)
def test_tables_with_other_words_are_refused(form, folder, others, tmp_path):
    old, new = tmp_path / f"old.{form}", tmp_path / f"new.{form}"
    for source, out in (folder, old), (others, new):
        assert features(source, "-o", out, "--kind", "bow", "--words", 8).exit_code == 0
    assert len(feature_table(new)) == 5
    words = (
        f"{str(new)!r} cannot be compared with {str(old)!r}: it has other visual words. Make it "
        f"again: knowmore features ... --like {old}"
    )
    with pytest.raises(KnowmoreError, match=f"^{re.escape(words)}$"):
        feature_table(new, like=old)
    # Somebody exchanged the words of a table.
    (tmp_path / "new.words.npz").replace(tmp_path / "old.words.npz")
    words = refused(others, "-o", new, "--like", old)
    assert "would have other visual words. Name the words it was made" in words
    (tmp_path / "old.words.npz").unlink()
    words = refused(others, "-o", new, "--like", old)
    assert f", the visual words of {str(old)!r}, does not exist. Say where they are" in words


def test_other_kinds_and_settings_are_refused(folder, others, tmp_path):
    common = "--words", 8
    for name, options in {
        "bow": ["--kind", "bow", *common],
        "phog": ["--kind", "phog"],
        "small": ["--kind", "phog", "--longest", 30],
    }.items():
        assert features(others, "-o", tmp_path / f"{name}.npz", *options).exit_code == 0
    for name, like, words in (
        ("bow", "phog", "another kind, bow and not phog"),
        ("small", "phog", r"other settings \(longest\)"),
    ):
        with pytest.raises(KnowmoreError, match=f"it has {words}. Make it again"):
            feature_table(tmp_path / f"{name}.npz", like=tmp_path / f"{like}.npz")


def test_words_that_a_table_needs_are_not_replaced_silently(folder, others, tmp_path):
    out = "-o", tmp_path / "out.npz", "--kind", "bow"
    assert features(folder, *out, "--words", 8).exit_code == 0
    place = tmp_path / "out.words.npz"
    words, table = place.read_bytes(), (tmp_path / "out.npz").read_bytes()
    # The same words once more are none others.
    assert features(folder, *out, "--words", 8).exit_code == 0
    message = refused(others, *out, "--words", 8)
    assert message == (
        f"{str(place)!r} holds other visual words, which models of "
        f"{str(tmp_path / 'out.npz')!r} may need. Use --codebook {place}, or replace them: "
        f"--save-codebook {place}."
    )
    assert (place.read_bytes(), (tmp_path / "out.npz").read_bytes()) == (words, table)
    assert features(others, *out, "--codebook", place).exit_code == 0
    assert place.read_bytes() == words
    assert features(others, *out, "--words", 8, "--save-codebook", place).exit_code == 0
    assert place.read_bytes() != words


@pytest.mark.parametrize("form", FORMS)
def test_damaged_tables_are_refused(form, others, tmp_path):
    path = tmp_path / f"out.{form}"
    assert features(others, "-o", path, "--kind", "phog").exit_code == 0
    whole = path.read_bytes()
    words = f"The file {str(path)!r} cannot be read as a table of features: it is cut off or damag"
    for data in b"", b"nothing", whole[:-9], whole[: len(whole) // 2], whole[50:]:
        path.write_bytes(data)
        for ask in lambda: feature_table(path), lambda: feature_table(path, like=path):
            with pytest.raises(KnowmoreError, match=f"^{re.escape(words)}"):
                ask()
    with pytest.raises(KnowmoreError, match=r"must end in \.npz or \.parquet"):
        feature_table("features.csv")


def test_sources_that_cannot_be_used(folder, tmp_path):
    out = "-o", tmp_path / "out.npz"
    assert "There is no file or folder" in refused(tmp_path / "nowhere", *out)
    (tmp_path / "empty").mkdir()
    assert "There is no picture in" in refused(tmp_path / "empty", *out)
    (tmp_path / "empty" / "1.png").write_bytes(b"no picture")
    assert "None of the 1 pictures can be used." in refused(tmp_path / "empty", *out)
    assert "size=100000, but the sample has only" in refused(folder, *out, "--words", 100_000)
    (tmp_path / "words.npz").write_bytes(b"no words")
    words = refused(folder, *out, "--codebook", tmp_path / "words.npz")
    assert "cannot be read as a KMeansCodebook" in words
    assert not (tmp_path / "out.npz").exists()


def test_unknown_kinds_and_missing_options_are_misuse(folder):
    assert features(folder, "-o", "out.npz", "--kind", "hog").exit_code == 2
    assert features(folder).exit_code == 2


def test_own_errors_print_their_message(tmp_path, monkeypatch, capfd):
    arguments = ["knowmore", "features", str(tmp_path / "nowhere"), "-o", str(tmp_path / "o.npz")]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    assert capfd.readouterr().err.startswith("knowmore: There is no file or folder ")


@pytest.mark.slow
def test_missing_pyarrow_is_named_before_the_work(folder, tmp_path):
    result = run_apart(
        "sys.modules['pyarrow'] = None", folder, "-o", tmp_path / "out.parquet", "--kind", "phog"
    )
    assert result.returncode == 2
    assert result.stderr == f"knowmore: {missing_extra('pyarrow', 'tables')}\n"


def test_real_pictures(tmp_path):
    try:
        source = find("caltech101_mini.tar")
    except MissingData as error:
        pytest.skip(str(error))
    result = features(source, "-o", tmp_path / "out.npz", "--kind", "phog")
    assert result.exit_code == 0, result.output
    found = loaded(tmp_path / "out.npz")
    assert found["features"].shape == (300, 1700)
    assert len(set(found["labels"])) == 10


def test_the_label_may_be_the_outermost_folder(tmp_path):
    deep = tmp_path / "pictures" / "animals" / "cats"
    deep.mkdir(parents=True)
    Image.fromarray(np.full((32, 32), 9, np.uint8)).save(deep / "one.png")
    for depth, want in (("-1", "cats"), ("0", "animals")):
        out = tmp_path / f"{want}.npz"
        common = "--kind", "lbp", "--no-cache", "--label", depth
        assert features(tmp_path / "pictures", "-o", out, *common).exit_code == 0
        assert feature_table(out).labels.tolist() == [want]


def test_the_commands_know_every_kind():
    assert get_args(Pictures) == KINDS


@pytest.mark.parametrize("kind", ["lbp", "colours", "covariance", "colour-sift", "self-similarity"])
def test_every_kind_can_be_added_to(tmp_path, kind):
    folder = tmp_path / "large"
    for i in range(4):
        path = folder / "class" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(i).integers(0, 256, (64, 72, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    common = ["--no-cache", *(["--words", 5] if kind in WORDED else [])]
    first = features(folder, "-o", tmp_path / "one.npz", "--kind", kind, *common)
    assert first.exit_code == 0, first.output
    again = "-o", tmp_path / "two.npz", "--like", tmp_path / "one.npz", "--no-cache"
    assert features(folder, *again).exit_code == 0
    one, two = (feature_table(tmp_path / name).X for name in ("one.npz", "two.npz"))
    np.testing.assert_array_equal(one, two)
