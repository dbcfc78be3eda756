"""What the page says of a model in words: how much a plane shows, what a label informs, advice."""

from __future__ import annotations

import re
from importlib.resources import files

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tolerance import assert_rounded

import knowmore
from knowmore import GPClassifier
from knowmore.web.drawing import plane_of, slice_of
from knowmore.web.pool import informed
from knowmore.web.snapshot import why_to_tune
from knowmore.web.studio import Studio
from knowmore.workbench import Judge

RNG = np.random.default_rng(0)
# What protanopes, deuteranopes and tritanopes see of linear red, green and blue (Machado 2009).
SEEN = np.array(
    [
        np.eye(3),
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
    ]
)
# Linear colours to the cones of Oklab, and these to its coordinates.
CONES = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
LAB = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]


def test_a_plane_through_all_that_differs_shows_all_of_it():
    X = np.zeros((30, 4))
    X[:, :2] = RNG.normal(size=(30, 2))
    labels = np.where(X[:, 0] > 0, "a", "b")
    clf = GPClassifier(RBF(1.0), noise=0.1).fit(X, labels)
    found = slice_of(plane_of(X, labels, ("w", "x", "y", "z")), clf, X)
    assert_rounded(np.array([found.share, found.agreement]), np.ones(2))
    assert not found.misleads


def test_a_plane_that_hides_what_the_classes_differ_in_misleads():
    """Two classes that differ along one column alone, which varies less than two others."""
    X = RNG.normal(size=(60, 3)) * [5.0, 4.0, 0.2]
    X[:, 2] = np.where(np.arange(60) % 2, 1.0, -1.0)
    labels = np.where(X[:, 2] > 0, "a", "b")
    clf = GPClassifier(RBF([50.0, 50.0, 1.0]), noise=0.1).fit(X, labels)
    plane = plane_of(X, labels, ("x", "y", "z"))
    found = slice_of(plane, clf, X)
    total = ((X - X.mean(axis=0)) ** 2).sum()
    seen = ((X - X.mean(axis=0)) @ plane.axes.T) ** 2
    assert_rounded(np.array(found.share), seen.sum() / total)
    said = clf.predict(plane.rows(plane.places(X)))
    assert found.agreement == (said == clf.predict(X)).mean()
    assert found.misleads


def test_a_plane_of_columns_in_unlike_units_is_one_as_the_model_sees_them(tmp_path):
    """Body mass in grams beside a column from 0 to 1: in grams the plane shows mass alone."""
    y = np.repeat(["a", "b", "c"], 40)
    codes = np.repeat([0.0, 1.0, 2.0], 40)
    X = np.column_stack(
        [codes + RNG.normal(0, 0.1, 120), RNG.normal(4000, 800, 120), RNG.uniform(0, 1, (120, 2))]
    )
    kernel = RBF([1.0, 4000.0, 1.0, 1.0])
    with knowmore.open(tmp_path / "m.km", GPClassifier(kernel, noise=0.1)) as store:
        store.add(X, y)
        now = Studio(store).now()
        assert_rounded(np.array(now.units.prod()), np.array(1.0), 1e3)
        plane = Studio(store).plane(now)
        found = slice_of(plane, now.estimator, X, now.judge)
        seen, Z = plane.places(X), (X - X.mean(axis=0)) / now.units
        assert_rounded(
            np.array(found.share), (seen - seen.mean(axis=0)).var(0).sum() / Z.var(0).sum()
        )
        assert found.share > 0.5
        assert not found.hatching_misleads
        places = RNG.normal(size=(120, 2))
        assert_rounded(plane.places(plane.moved(X, places)), places, 1e6)


def test_a_plane_that_calls_unknown_what_is_known_says_so():
    """Groups that lie at the corners of a cube: its middle is near to none of them."""
    corners = np.array([[i, j, k] for i in (0, 9) for j in (0, 9) for k in (0, 9)], dtype=float)
    X = np.repeat(corners, 20, axis=0) + RNG.normal(0, 0.2, (160, 3))
    labels = np.where(X[:, 0] > 4, "a", "b")
    clf = GPClassifier(RBF(1.0), noise=0.1).fit(X, labels)
    judge = Judge.of(clf, clf.editable_.examples, 0.05)
    found = slice_of(plane_of(X, labels, ("x", "y", "z")), clf, X, judge)
    assert found.unsure > 0.9
    assert found.hatching_misleads


def test_the_page_is_told_of_a_slice_and_of_nothing_where_all_is_seen(tmp_path):
    for d in (2, 5):
        with knowmore.open(tmp_path / f"{d}.km", GPClassifier()) as store:
            X = RNG.normal(size=(20, d))
            store.add(X, np.where(X[:, 0] > 0, "a", "b"))
            found = Studio(store).state()["plane"]["slice"]
            assert (found is None) == (d == 2)
            if found is not None:
                assert set(found) == {
                    "share",
                    "agreement",
                    "unsure",
                    "misleads",
                    "hatching_misleads",
                }


def test_a_label_informs_rows_that_lose_a_twentieth_of_their_variance():
    X = np.array([[0.0], [0.1], [0.5], [3.0], [9.0]])
    clf = GPClassifier(RBF(1.0), noise=0.1).fit([[20.0], [21.0]], ["a", "b"])
    before = clf.predict_variance(X)
    after = clf.add([[0.0]], ["a"]) is not None and clf.predict_variance(X)
    prior = RBF(1.0)(X) + 0.0
    count = informed(prior[:, 0], float(before[0]), before)
    assert count == ((before - after) >= 0.05 * before).sum() == 3
    assert informed(np.zeros(2), 0.0, np.ones(2)) == 0


def advised(path, X, labels, **settings):
    with knowmore.open(path, GPClassifier(RBF(settings["width"]), noise=0.1)) as store:
        store.add(X, labels)
        return why_to_tune(Studio(store).now())


def test_better_settings_are_offered_where_something_says_so(tmp_path):
    X = RNG.uniform(-1, 1, size=(60, 2))
    labels = np.where(X[:, 0] > 0, "a", "b")
    # So narrow that no example says anything of another.
    assert advised(tmp_path / "narrow.km", X, labels, width=1e-4) == (
        "Of 60 of 60 examples the others can say nothing."
    )
    assert advised(tmp_path / "fits.km", X, labels, width=1.0) == ""
    assert advised(tmp_path / "few.km", X[:10], labels[:10], width=1e-4) == ""


@pytest.mark.parametrize(("first", "least"), [(6, 7.0), (20, 4.5)])
def test_colours_are_told_apart(first, least):
    """In Oklab, in hundredths, by people with and without the three colour deficiencies."""
    text = files("knowmore.web").joinpath("static/draw.js").read_text("utf-8")
    listed = re.search(r"COLOURS = \[(.*?)\]", text, re.DOTALL)[1]
    rgb = [[int(one[i : i + 2], 16) for i in (0, 2, 4)] for one in re.findall(r"#(\w{6})", listed)]
    assert len(rgb) == 20
    linear = (np.array(rgb[:first]) / 255) ** 2.2
    for seen in SEEN:
        cones = np.cbrt(np.clip(linear @ seen.T, 0, 1) @ np.array(CONES).T)
        lab = 100 * cones @ np.array(LAB).T
        apart = np.linalg.norm(lab[:, None] - lab[None], axis=2) + 1e6 * np.eye(first)
        assert apart.min() >= least
    # Colours and shapes together repeat only after 160 classes.
    shapes = [(slot % 20, (slot + slot // 20) % 8) for slot in range(160)]
    assert len(set(shapes)) == 160
