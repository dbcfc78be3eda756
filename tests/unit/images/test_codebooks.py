"""Codebooks against the models they are learnt by, and through a file and back."""

from __future__ import annotations

import json
import re
import zipfile

import numpy as np
import pytest
from damage import mutants
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier

from knowmore import KnowmoreError
from knowmore.images import Descriptors, ForestCodebook, KMeansCodebook, Words
from knowmore.images.codebooks import Leaves

rng = np.random.default_rng(0)
LABELS = np.array(["left", "right"] * 5)


def picture(label, k):
    """Descriptors; some of their numbers depend on the class."""
    vectors = rng.integers(0, 200, (k, 16))
    vectors[:, :4] += 40 * (label == "left")
    return Descriptors(rng.random((k, 2)), vectors.astype(np.uint8))


PICTURES = [picture(label, int(rng.integers(30, 60))) for label in LABELS]
ALL = np.concatenate([each.vectors for each in PICTURES])
CODEBOOKS = {"kmeans": KMeansCodebook(12), "forest": ForestCodebook(40, trees=4)}

of_both = pytest.mark.parametrize("codebook", CODEBOOKS.values(), ids=CODEBOOKS)


def assert_same(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert a.size == b.size
        np.testing.assert_array_equal(a.indices, b.indices)
        np.testing.assert_array_equal(a.positions, b.positions)


def test_kmeans_gives_the_nearest_centre():
    codebook = KMeansCodebook(12).fit(PICTURES)
    words = codebook.transform(PICTURES)
    centres = codebook.vocabulary_.centres.astype(float)
    assert centres.shape == (12, 16)
    for each, found in zip(PICTURES, words, strict=True):
        assert isinstance(found, Words)
        assert (found.size, len(found)) == (12, len(each))
        np.testing.assert_array_equal(found.positions, each.positions)
        for vector, word in zip(each.vectors.astype(float), found.indices, strict=True):
            distances = ((centres - vector) ** 2).sum(axis=1)
            # Scores are single precision: two centres as near as that are both right.
            unsure = 16 * np.finfo(np.float32).eps * (vector @ vector + (centres**2).sum())
            assert distances[word] <= distances.min() + unsure


def test_kmeans_has_as_many_words_as_it_was_asked_for():
    words = KMeansCodebook(12).fit_transform(PICTURES)
    assert set(np.concatenate([each.indices for each in words])) == set(range(12))


def test_forest_gives_the_leaves_of_scikit_learn():
    codebook = ForestCodebook(40, trees=4, random_state=3).fit(PICTURES, LABELS)
    owners = np.repeat(np.arange(len(PICTURES)), [len(each) for each in PICTURES])
    forest = ExtraTreesClassifier(
        4, criterion="entropy", max_features=16, max_leaf_nodes=10, random_state=3
    ).fit(ALL, LABELS[owners])
    leaves = forest.apply(ALL)
    found = np.concatenate([each.indices for each in codebook.transform(PICTURES)]).reshape(-1, 4)
    before = 0
    for tree, estimator in enumerate(forest.estimators_):
        is_leaf = estimator.tree_.children_left < 0
        word = before + np.cumsum(is_leaf) - 1
        np.testing.assert_array_equal(found[:, tree], word[leaves[:, tree]])
        before += is_leaf.sum()
    assert codebook.vocabulary_.size == before <= 40


def test_a_number_at_the_threshold_goes_to_the_first_child():
    children, none = np.array([[1, 2], [-1, -1], [-1, -1]]), np.zeros(3, int)
    leaves = Leaves(children, none, np.full(3, 5.0), np.array([0]), np.array(1))
    np.testing.assert_array_equal(leaves.words(np.array([[4], [5], [6]])), [[0], [0], [1]])


def test_forest_votes_once_for_each_tree():
    (found, *_) = ForestCodebook(40, trees=4).fit_transform(PICTURES, LABELS)
    assert len(found) == 4 * len(PICTURES[0])
    np.testing.assert_array_equal(found.positions, np.repeat(PICTURES[0].positions, 4, axis=0))


def test_forest_words_tell_classes_apart():
    words = ForestCodebook(10, trees=1).fit_transform(PICTURES, LABELS)
    left, right = (
        np.bincount(
            np.concatenate([w.indices for w, y in zip(words, LABELS, strict=True) if y == label]),
            minlength=10,
        )
        for label in ("left", "right")
    )
    # At random every word would be about as frequent in both classes.
    assert (abs(left - right) > 2 * np.sqrt(left + right)).sum() >= 5


@of_both
def test_the_same_seed_gives_the_same_words(codebook):
    one, other = (clone(codebook).fit(PICTURES, LABELS).transform(PICTURES) for _ in range(2))
    assert_same(one, other)
    different = clone(codebook).set_params(random_state=1).fit(PICTURES, LABELS)
    unlike = different.transform(PICTURES)
    assert any((a.indices != b.indices).any() for a, b in zip(one, unlike, strict=True))


@of_both
def test_threads_and_batches_change_nothing(codebook):
    codebook = clone(codebook).fit(PICTURES, LABELS)
    alone = codebook.transform(PICTURES)
    assert_same(codebook.set_params(n_jobs=3).transform(PICTURES), alone)
    assert_same([codebook.transform([each])[0] for each in PICTURES], alone)


@of_both
def test_a_sample_is_drawn_evenly_from_all(codebook, monkeypatch):
    seen = []
    original = type(codebook)._learn

    def spy(self, vectors, owners, *rest):
        seen.append((vectors, owners))
        return original(self, vectors, owners, *rest)

    monkeypatch.setattr(type(codebook), "_learn", spy)
    clone(codebook).set_params(sample=200).fit(PICTURES, LABELS)
    ((vectors, owners),) = seen
    assert len(vectors) == len(owners) == 200
    assert set(owners) == set(range(len(PICTURES)))
    for i in range(len(PICTURES)):
        rows = {tuple(row) for row in PICTURES[i].vectors.tolist()}
        mine = [tuple(row) for row in vectors[owners == i].astype(int).tolist()]
        assert set(mine) <= rows
        assert len(set(mine)) == len(mine)


@of_both
def test_saved_and_loaded_it_is_the_same(codebook, tmp_path):
    codebook = clone(codebook).fit(PICTURES, LABELS)
    path = tmp_path / "codebook.file"
    codebook.save(path)
    loaded = type(codebook).load(path)
    assert loaded.get_params() == codebook.get_params()
    assert_same(loaded.transform(PICTURES), codebook.transform(PICTURES))
    for name, array in np.load(path, allow_pickle=False).items():
        if name != "about":
            mine = getattr(loaded.vocabulary_, name)
            assert mine.dtype == array.dtype == getattr(codebook.vocabulary_, name).dtype
            np.testing.assert_array_equal(mine, getattr(codebook.vocabulary_, name))
    loaded.save(tmp_path / "again")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["again", "codebook.file"]


@of_both
def test_a_damaged_file_is_reported(codebook, tmp_path):
    path = tmp_path / "codebook.npz"
    codebook = clone(codebook).fit(PICTURES, LABELS)
    codebook.save(path)
    whole = path.read_bytes()
    kind = type(codebook).__name__
    words = f"cannot be read as a {kind}: it is damaged, or {kind}.save did not write it."
    damaged = [
        b"",
        whole[:-10],
        whole[: len(whole) // 2],
        b"PK" + whole[2:40],
        b"no zip",
        whole[9:],
    ]
    damaged += [bytes(b ^ (i == at) for i, b in enumerate(whole)) for at in (60, len(whole) // 3)]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(words)) as caught:
            type(codebook).load(path)
        assert isinstance(caught.value, KnowmoreError)


@of_both
def test_any_damage_is_reported_or_harmless(codebook, tmp_path):
    path = tmp_path / "codebook.npz"
    codebook = clone(codebook).fit(PICTURES, LABELS)
    codebook.save(path)
    whole, kept = path.read_bytes(), codebook.transform(PICTURES)
    refused = 0
    for mutant in mutants(whole, np.random.default_rng(0), 300):
        path.write_bytes(mutant)
        try:
            loaded = type(codebook).load(path)
        except KnowmoreError:
            refused += 1
        else:
            assert_same(loaded.transform(PICTURES), kept)
    assert refused > 200


def rewritten(path, change):
    """The file with other arrays."""
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    change(arrays)
    np.savez(path, **arrays)


def endless(arrays):
    arrays["children"][0] = 0


def beyond(arrays):
    arrays["children"][0] = 10**6


def wrong_feature(arrays):
    arrays["feature"][0] = 16


def missing(arrays):
    del arrays["threshold"]


def one_more(arrays):
    arrays["more"] = np.zeros(2)


def flat(arrays):
    arrays["children"] = arrays["children"].ravel()


def fractions(arrays):
    arrays["roots"] = arrays["roots"] / 2


def settings_of_another(arrays):
    about = json.loads(str(arrays["about"])) | {"settings": {"colour": "red"}}
    arrays["about"] = np.array(json.dumps(about))


@pytest.mark.parametrize(
    "change",
    [endless, beyond, wrong_feature, missing, one_more, flat, fractions, settings_of_another],
)
def test_a_file_of_nonsense_is_reported(change, tmp_path):
    path = tmp_path / "codebook.npz"
    ForestCodebook(40, trees=4).fit(PICTURES, LABELS).save(path)
    rewritten(path, change)
    with pytest.raises(ValueError, match=r"cannot be read as a ForestCodebook: it is damaged"):
        ForestCodebook.load(path)


def test_centres_must_be_numbers(tmp_path):
    path = tmp_path / "codebook.npz"
    KMeansCodebook(12).fit(PICTURES).save(path)
    rewritten(path, lambda arrays: arrays["centres"].fill(np.nan))
    with pytest.raises(ValueError, match=r"cannot be read as a KMeansCodebook: it is damaged"):
        KMeansCodebook.load(path)


def test_no_code_is_read_from_a_file(tmp_path):
    path = tmp_path / "codebook.npz"
    np.savez(path, about=np.array([{"pickled": True}], dtype=object))
    with pytest.raises(ValueError, match=r"cannot be read as a KMeansCodebook"):
        KMeansCodebook.load(path)
    KMeansCodebook(12).fit(PICTURES).save(path)
    with zipfile.ZipFile(path) as file:
        assert sorted(file.namelist()) == ["about.npy", "centres.npy"]


def test_other_kinds_and_versions_are_reported(tmp_path, monkeypatch):
    path = tmp_path / "codebook.npz"
    KMeansCodebook(12).fit(PICTURES).save(path)
    with pytest.raises(ValueError, match=r"a KMeansCodebook of version 1, but a ForestCodebook of"):
        ForestCodebook.load(path)
    monkeypatch.setattr("knowmore._base.files.VERSION", 2)
    with pytest.raises(ValueError, match=r"of version 1, but a KMeansCodebook of version 2 is"):
        KMeansCodebook.load(path)
    with pytest.raises(ValueError, match=r"The file '.*none.npz' does not exist"):
        KMeansCodebook.load(tmp_path / "none.npz")


def test_a_failed_save_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "codebook.npz"
    codebook = KMeansCodebook(12).fit(PICTURES)
    codebook.save(path)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr("numpy.savez", full)
    with pytest.raises(OSError, match="no space left"):
        codebook.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


FLAT = [Descriptors(np.zeros((9, 2)), np.zeros((9, 16), np.uint8))]

BAD = {
    "few": (
        KMeansCodebook(5),
        (FLAT,),
        ValueError,
        "size=5, but the sample has only 1 different descriptors. Give more",
    ),
    "size": (
        KMeansCodebook(1),
        (PICTURES,),
        ValueError,
        "size=1. Give a whole number of at least 2.",
    ),
    "sample": (
        KMeansCodebook(sample=0),
        (PICTURES,),
        ValueError,
        "sample=0. Give a whole number",
    ),
    "large seed": (
        KMeansCodebook(random_state=2**32),
        (PICTURES,),
        ValueError,
        "random_state=4294967296. Give a whole number from 0 to 4294967295.",
    ),
    "large numbers": (
        ForestCodebook(),
        ([Descriptors(np.zeros((2, 2)), np.full((2, 16), 1e30))] * 10, LABELS),
        ValueError,
        "Squares of descriptors go beyond single precision. Scale them down.",
    ),
    "seed": (KMeansCodebook(random_state=0.5), (PICTURES,), ValueError, "random_state=0.5. Give a"),
    "no classes": (ForestCodebook(), (PICTURES,), ValueError, "y is None. Give the class of each"),
    "one class": (
        ForestCodebook(),
        (PICTURES, ["a"] * 10),
        ValueError,
        "y has shape (10,) and 1 class(es). Give the class of each of the 10",
    ),
    "other y": (
        ForestCodebook(),
        (PICTURES, ["a", "b"]),
        ValueError,
        "y has shape (2,) and 2 class(es). Give the class of each of the 10 pictures, two or more.",
    ),
    "trees": (ForestCodebook(trees=0), (PICTURES, LABELS), ValueError, "trees=0. Give a whole nu"),
    "many trees": (
        ForestCodebook(9, trees=5),
        (PICTURES, LABELS),
        ValueError,
        "size=9 is too few for 5 trees of two words.",
    ),
    "width": (
        KMeansCodebook(5),
        ([*PICTURES, Descriptors(np.zeros((2, 2)), np.zeros((2, 3)))],),
        ValueError,
        "X must be a list of Descriptors from one DenseSIFT, of size 16, but item 10 is of size 3.",
    ),
    "pictures": (
        KMeansCodebook(),
        ([np.zeros((20, 20))],),
        TypeError,
        "X must be a list of Descriptors from one DenseSIFT, but item 0 is an ndarray.",
    ),
    "empty": (
        KMeansCodebook(),
        ([],),
        ValueError,
        "X must be a list of Descriptors from one DenseSIFT, one for each picture, but is empty.",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_input_is_reported_and_changes_nothing(bad):
    codebook, arguments, kind, words = BAD[bad]
    codebook = clone(codebook)
    with pytest.raises(kind, match=re.escape(words)) as caught:
        codebook.fit(*arguments)
    assert isinstance(caught.value, KnowmoreError)
    assert not hasattr(codebook, "vocabulary_")


@of_both
def test_nothing_is_known_before_fit(codebook, tmp_path):
    words = "has no words yet. Call fit first."
    with pytest.raises(AttributeError, match=words):
        clone(codebook).transform(PICTURES)
    with pytest.raises(AttributeError, match=words):
        clone(codebook).save(tmp_path / "a")
    narrow = [Descriptors(np.zeros((2, 2)), np.zeros((2, 3)))]
    with pytest.raises(ValueError, match=r"of size 16, but item 0 is of size 3\."):
        clone(codebook).fit(PICTURES, LABELS).transform(narrow)


@of_both
@pytest.mark.parametrize("huge", [1e30, 1e300])
def test_numbers_beyond_single_precision_have_no_word(codebook, huge):
    codebook = clone(codebook).fit(PICTURES, LABELS)
    large = [Descriptors(np.zeros((2, 2)), np.full((2, 16), huge))]
    with pytest.raises(ValueError, match="go beyond single precision") as caught:
        codebook.transform(large)
    assert isinstance(caught.value, KnowmoreError)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Descriptors(np.zeros((1, 2)), np.array([[1, np.nan]])), "have NaN or infinity"),
        (lambda: Descriptors(np.zeros((1, 2)), np.array([[1, np.inf]])), "have NaN or infinity"),
        (
            lambda: Descriptors(np.zeros((1, 2)), np.array([["a"]])),
            "of float64 and (1, 1) of <U1 were given",
        ),
        (
            lambda: Descriptors(np.zeros((1, 2)), np.array([[1j]])),
            "(1, 1) of complex128 were given",
        ),
        (lambda: Descriptors(np.full((1, 2), np.nan), np.ones((1, 2))), "go from nan to nan"),
        (
            lambda: Descriptors(np.zeros((1, 2)), np.ma.ones((1, 2))),
            "of vectors (k, d) is a masked",
        ),
        (
            lambda: Descriptors(np.ma.zeros((1, 2)), np.ones((1, 2))),
            "of positions (k, 2) is a masked",
        ),
        (lambda: Words(np.zeros((1, 2)), np.ma.zeros(1, int), 3), "of indices (k,) is a masked"),
        (lambda: Words(np.zeros((1, 2)), np.ones(1), 3), "of float64, but must be whole numbers"),
    ],
)
def test_values_that_have_no_word_are_refused(build, words):
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        build()
    assert isinstance(caught.value, KnowmoreError)
