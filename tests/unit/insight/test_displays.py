"""Each Display draws what was asked, from an estimator in one line."""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
import oracle
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline

from knowmore import GPClassifier, GPRegressor, LSSVMClassifier, living
from knowmore.errors import InvalidInput, MissingExtra
from knowmore.insight import (
    LearningCurveDisplay,
    NoveltyDisplay,
    ScoreFieldDisplay,
    SuspectsDisplay,
    novelty,
    suspects,
)

matplotlib.use("agg")
from matplotlib import pyplot

KERNEL, NOISE = RBF(1.0), 0.1


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    pyplot.close("all")


def clouds(seed=0, n=60, features=2):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    centres = 2 * np.eye(3, max(features, 3))[:, :features]
    return rng.normal(size=(n, features)) + centres[y], np.array(["ash", "oak", "yew"])[y]


def fitted(**keywords):
    return GPClassifier(KERNEL, NOISE).fit(*clouds(**keywords))


DRAWN = {
    "scores": lambda clf, ax=None: ScoreFieldDisplay.from_estimator(clf, grid_resolution=9, ax=ax),
    "suspects": lambda clf, ax=None: SuspectsDisplay.from_estimator(clf, ax=ax),
    "novelty": lambda clf, ax=None: NoveltyDisplay.from_estimator(clf, clouds(1)[0], ax=ax),
    "learning": lambda clf, ax=None: LearningCurveDisplay.from_estimator(clf, points=4, ax=ax),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_drawn_on_the_given_axes(name, tmp_path):
    clf = fitted()
    figure, (left, right) = pyplot.subplots(1, 2)
    display = DRAWN[name](clf, left)
    assert (display.figure_, display.ax_) == (figure, left)
    assert left.has_data()
    assert left.get_title()
    assert not right.has_data()
    assert display.plot(right) is display
    assert display.ax_ is right
    assert right.has_data()
    alone = DRAWN[name](clf)
    assert alone.figure_ is not figure
    alone.figure_.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 0


@pytest.mark.parametrize("name", DRAWN)
def test_a_missing_matplotlib_is_explained(name, monkeypatch):
    clf = fitted()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtra, match=r'matplotlib.* "knowmore\[plots\]"'):
        DRAWN[name](clf)


def test_the_field_has_the_colour_of_the_winner():
    clf = fitted()
    display = ScoreFieldDisplay.from_estimator(clf, grid_resolution=20)
    points = np.stack(np.meshgrid(display.across, display.down), axis=-1)
    scores = clf.decision_function(points.reshape(-1, 2)).reshape(20, 20, 3)
    np.testing.assert_array_equal(display.scores, scores)
    (image,) = display.ax_.get_images()
    # The hue is read off the darkest pixel of each class.
    for c in np.unique(scores.argmax(axis=-1)):
        best = np.where(scores.argmax(axis=-1) == c, scores.max(axis=-1), -1)
        i, j = np.unravel_index(best.argmax(), best.shape)
        marks = display.ax_.collections[-3:][c]
        colour, shade = marks.get_facecolor()[0, :3], best[i, j].clip(0, 1)
        np.testing.assert_array_equal(image.get_array()[i, j], 1 - shade * (1 - colour))
        np.testing.assert_array_equal(marks.get_offsets(), clf.model_.examples.X[c::3])
    low, high = clf.model_.examples.X.min(axis=0), clf.model_.examples.X.max(axis=0)
    assert (display.across[0], display.down[0]) < tuple(low)
    assert (display.across[-1], display.down[-1]) > tuple(high)


@pytest.mark.parametrize(
    ("X", "y"),
    [([[0.0, 0.0]], ["a"]), ([[1.0, 5.0], [1.0, 6.0]], ["a", "a"])],
    ids=["one example", "one class on a line"],
)
def test_a_field_of_almost_nothing(X, y):
    display = ScoreFieldDisplay.from_estimator(GPClassifier(KERNEL, NOISE).fit(X, y))
    assert (np.diff(display.across) > 0).all()
    assert (np.diff(display.down) > 0).all()
    assert display.ax_.get_legend_handles_labels()[1] == ["a"]


def test_many_classes_have_colours_of_their_own():
    X, _ = clouds()
    display = ScoreFieldDisplay.from_estimator(
        GPClassifier(KERNEL, NOISE).fit(X, np.arange(60) % 12)
    )
    faces = [tuple(marks.get_facecolor()[0]) for marks in display.ax_.collections[-12:]]
    assert len(set(faces)) == 12


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("names", [["_x", "_y"], [r"$\frac$", "b"], ["$5", "$6"]])
def test_class_names_are_not_parsed_as_formulas(names, tmp_path):
    X, _ = clouds()
    table = pd.DataFrame(X, columns=["price $US", "tax $US _^"])
    clf = GPClassifier(KERNEL, NOISE).fit(table, np.array(names)[np.arange(60) % 2])
    display = ScoreFieldDisplay.from_estimator(clf, grid_resolution=5)
    display.figure_.savefig(tmp_path / "picture.png")
    assert legend(display) == sorted(names)
    assert display.ax_.get_xlabel() == "price $US"


def test_a_legend_names_no_more_than_there_is_room_for(tmp_path):
    X, _ = clouds()
    clf = GPClassifier(KERNEL, NOISE).fit(X, np.arange(60))
    display = ScoreFieldDisplay.from_estimator(clf, grid_resolution=5)
    display.figure_.savefig(tmp_path / "picture.png")
    assert legend(display) == [str(c) for c in range(20)]
    assert display.ax_.get_legend().get_title().get_text() == "40 more not named"


def test_the_axes_are_named_by_the_features():
    X, y = clouds()
    clf = GPClassifier(KERNEL, NOISE).fit(pd.DataFrame(X, columns=["height", "girth"]), y)
    ax = ScoreFieldDisplay.from_estimator(clf, grid_resolution=5).ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("height", "girth")


def test_features_that_a_pipeline_makes_have_names_of_their_own():
    X, y = clouds(features=4)
    table = pd.DataFrame(X, columns=["height", "girth", "leaves", "age"])
    pipeline = make_pipeline(PCA(2), GPClassifier(KERNEL, NOISE)).fit(table, y)
    ax = ScoreFieldDisplay.from_estimator(living(pipeline), grid_resolution=5).ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x₁", "x₂")


def test_suspects_are_bars_in_their_order():
    clf = fitted()
    found = suspects(clf)
    assert len(found.ids) > 4
    ax = SuspectsDisplay.from_estimator(clf, shown=4).ax_
    assert [bar.get_width() for bar in ax.patches] == found.margin[:4].tolist()
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names[0] == f"{found.ids[0]}:  {found.labels[0]} → {found.preferred[0]}"
    assert ax.yaxis.get_inverted()
    all_ = SuspectsDisplay(found, shown=100).plot().ax_
    assert len(all_.patches) == len(found.ids)


def test_ids_are_not_parsed_as_formulas(tmp_path):
    X, y = clouds()
    clf = GPClassifier(KERNEL, NOISE).fit(X, y, ids=[f"${i}^$" for i in range(60)])
    SuspectsDisplay.from_estimator(clf).figure_.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").exists()


def test_no_suspects_make_an_empty_picture():
    clf = GPClassifier(KERNEL, NOISE).fit([[0.0], [0.1], [9.0], [9.1]], list("aabb"))
    ax = SuspectsDisplay.from_estimator(clf).ax_
    assert ax.get_title() == "0 of 4 labels are suspect"
    assert len(ax.patches) == 0


@pytest.mark.parametrize("method", ["variance", "probability", "null_space"])
def test_novelty_is_drawn_beside_the_known_examples(method):
    clf, X = fitted(), clouds(1)[0] + 2
    display = NoveltyDisplay.from_estimator(clf, X, method=method, quantile=0.9)
    found = novelty(clf, X, method)
    threshold = found.threshold(0.9)
    _, known, new = sorted(display.ax_.get_legend_handles_labels()[1], reverse=True)
    assert f"{(found.left_out > threshold).mean():.0%} above" in known + new
    assert f"{(found.values > threshold).mean():.0%} above" in known + new
    (line,) = display.ax_.lines
    assert set(line.get_xdata()) == {threshold}
    # Two histograms, each of all its sample: a hundred per cent.
    heights = [bar.get_height() for bar in display.ax_.patches]
    assert round(sum(heights)) == 200


@pytest.mark.parametrize("tested", [False, True])
def test_the_curve_matches_refits(tested):
    X, y = clouds(2)
    clf = GPClassifier(KERNEL, NOISE).fit(X[:40], y[:40])
    test = (X[40:], y[40:]) if tested else ()
    display = LearningCurveDisplay.from_estimator(clf, *test, points=5)
    assert display.sizes[-1] == 40
    assert len(display.sizes) == 5
    for m, accuracy in zip(display.sizes, display.accuracy, strict=True):
        classes, T = oracle.one_vs_all(y[:m])
        if tested:
            scores, truth = oracle.scores(KERNEL, NOISE, X[:m], T, X[40:]), y[40:]
        else:
            scores, _ = oracle.left_out(KERNEL, NOISE, X[:m], T, np.arange(m))
            truth = y[:m]
        assert accuracy == (np.array(classes)[scores.argmax(axis=1)] == truth).mean()
    (line,) = display.ax_.lines
    np.testing.assert_array_equal(line.get_ydata(), 100 * display.accuracy)


def test_a_least_squares_svm_is_drawn_too():
    X, y = clouds(2)
    clf = LSSVMClassifier(KERNEL, 1 / NOISE).fit(X, y)
    curve = LearningCurveDisplay.from_estimator(clf, points=3)
    assert curve.accuracy[-1] == (clf.leave_one_out().predicted == y).mean()
    for m, accuracy in zip(curve.sizes, curve.accuracy, strict=True):
        fresh = LSSVMClassifier(KERNEL, 1 / NOISE).fit(X[:m], y[:m]).leave_one_out()
        assert accuracy == (fresh.predicted == y[:m]).mean()
    field = ScoreFieldDisplay.from_estimator(clf, grid_resolution=5)
    points = np.stack(np.meshgrid(field.across, field.down), axis=-1).reshape(-1, 2)
    np.testing.assert_array_equal(field.scores.reshape(25, 3), clf.decision_function(points))
    bars = SuspectsDisplay.from_estimator(clf, shown=3).ax_.patches
    assert [bar.get_width() for bar in bars] == suspects(clf).margin[:3].tolist()


def test_the_curve_does_not_change_the_model():
    clf = fitted()
    before = clf.model_
    LearningCurveDisplay.from_estimator(clf)
    assert clf.model_ is before
    assert len(before.examples) == 60


MISTAKES = {
    "three features": (
        lambda: ScoreFieldDisplay.from_estimator(fitted(features=3)),
        "A field needs 2 features, the model has 3. Try a PCA.",
    ),
    "a grid of one": (
        lambda: ScoreFieldDisplay.from_estimator(fitted(), grid_resolution=1),
        "grid_resolution=1. Give a whole number of at least 2.",
    ),
    "a field of values": (
        lambda: ScoreFieldDisplay.from_estimator(GPRegressor().fit([[0.0, 0.0]], [1.0])),
        "ScoreFieldDisplay is about classes, but a GPRegressor has none. "
        "Ask for predict() on a grid.",
    ),
    "no suspects shown": (
        lambda: SuspectsDisplay.from_estimator(fitted(), shown=0),
        "shown=0. Give a whole number of at least 1.",
    ),
    "suspects of one class": (
        lambda: SuspectsDisplay.from_estimator(GPClassifier().fit([[0.0]], ["a"])),
        "All labels are 'a'. Add examples of another class.",
    ),
    "a curve of one example": (
        lambda: LearningCurveDisplay.from_estimator(GPClassifier().fit([[0.0]], ["a"])),
        "The model holds one example, which makes no curve. Add some more.",
    ),
    "a curve of one point": (
        lambda: LearningCurveDisplay.from_estimator(fitted(), points=1),
        "points=1. Give a whole number of at least 2.",
    ),
    "test data without labels": (
        lambda: LearningCurveDisplay.from_estimator(fitted(), clouds()[0]),
        "Of the test data X and y only one was given. Give both, or neither.",
    ),
    "too few labels": (
        lambda: LearningCurveDisplay.from_estimator(fitted(), clouds()[0], ["ash"]),
        "y has shape (1,), but there are 60 examples. Give one value for each, in the same order.",
    ),
    "a curve of values": (
        lambda: LearningCurveDisplay.from_estimator(GPRegressor().fit([[0.0, 0.0]], [1.0])),
        "LearningCurveDisplay is about classes, but a GPRegressor has none. "
        "Ask for leave_one_out().",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained_and_nothing_is_drawn(name):
    act, text = MISTAKES[name]
    with pytest.raises(InvalidInput) as caught:
        act()
    assert str(caught.value) == text
    assert pyplot.get_fignums() == []
