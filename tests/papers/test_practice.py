"""The table of practice: figures, verdicts, splits, and a quick run."""

from __future__ import annotations

import numpy as np
import pytest
from quick_runs import coarse_look, is_picture, read, result_of, verdicts_of
from tolerance import assert_rounded

from knowmore.errors import MissingData, MissingExtra
from papers.practice import audit, chances, peers, practice, strangers, tables
from papers.practice.rows import Absent, Figure, Row, Tally, attempted


def row(ours, theirs, **options):
    peers = {name: Figure(tuple(values), 1.0) for name, values in theirs.items()}
    return Row("q", "w", "m", Figure(tuple(ours), 0.5), peers, **options)


# -- figures and verdicts ------------------------------------------------------------------------


def test_a_figure_is_a_mean_with_its_standard_error():
    values = np.random.default_rng(0).random(7)
    figure = Figure(tuple(values), 1.0)
    assert_rounded(figure.mean, values.mean())
    assert_rounded(figure.error, values.std(ddof=1) / np.sqrt(7))
    assert Figure((0.5,), 1.0).error == 0


@pytest.mark.parametrize(
    ("ours", "theirs", "options", "holds"),
    [
        ((0.8, 0.9), {"a": (0.7, 0.8)}, {}, True),
        ((0.7, 0.8), {"a": (0.8, 0.9)}, {}, False),
        # As good as each, not only as the best on average.
        ((0.7, 0.8), {"a": (0.6, 0.6), "b": (0.8, 0.9)}, {}, False),
        # Within the error of a difference that varies.
        ((0.7, 0.9), {"a": (0.9, 0.8)}, {}, True),
        ((0.795, 0.895), {"a": (0.8, 0.9)}, {}, False),
        ((0.795, 0.895), {"a": (0.8, 0.9)}, {"slack": 0.01}, True),
        ((0.1, 0.2), {"a": (0.2, 0.3)}, {"smaller": True}, True),
        ((0.2, 0.3), {"a": (0.1, 0.2)}, {"smaller": True}, False),
    ],
    ids=["ahead", "behind", "best", "error", "close", "slack", "smaller", "larger"],
)
def test_a_verdict_follows_the_figures(ours, theirs, options, holds):
    one = row(ours, theirs, **options)
    assert one.holds is one.verdict.holds is holds


def test_the_best_peer_is_the_smallest_where_small_is_good():
    one = row((0.1,), {"a": (0.2,), "b": (0.3,)}, smaller=True)
    assert one.best == "a"
    assert_rounded(one.difference.mean, 0.1, scale=1.0)


def test_several_values_of_a_split_are_averaged():
    tally = Tally()
    for split, value in ((0, 0.2), (0, 0.4), (1, 0.9)):
        tally.timed(split, "ours", lambda value=value: {"x": value, "y": 1.0})
    first, second = tally.rows("q", "w", "ours")
    assert (first.measure, second.measure) == ("x", "y")
    assert_rounded(first.ours.values, (0.3, 0.9))


def test_what_is_missing_is_told_and_nothing_else_is_hidden():
    def fails(error):
        raise error

    for kind in MissingData, MissingExtra:
        assert attempted("here", lambda kind=kind: fails(kind("gone"))) == [Absent("here", "gone")]
    with pytest.raises(ValueError, match="wrong"):
        attempted("here", lambda: fails(ValueError("wrong")))


# -- peers ---------------------------------------------------------------------------------------


def test_calibration_error_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    confidence, right = rng.random(200), rng.random(200) < 0.5
    wanted = 0.0
    for begin in np.arange(15) / 15:
        inside = (confidence >= begin) & (confidence < begin + 1 / 15)
        if inside.any():
            gap = abs(right[inside].mean() - confidence[inside].mean())
            wanted += inside.mean() * gap
    assert_rounded(chances.calibration_error(confidence, right), wanted, roundings=1000)


def test_mahalanobis_grows_away_from_the_classes():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 3)), rng.normal((9, 0, 0), size=(60, 3))])
    y = np.repeat([0, 1], 60)
    near, far = peers.mahalanobis(X, y, np.array([[9.0, 0, 0], [4.5, 20, 0]]))
    assert near < 2 < 100 < far


@pytest.mark.parametrize("likely", [False, True])
def test_planted_labels_are_wrong_and_counted(likely):
    y = np.repeat(list("abcde"), 40)
    _, true = np.unique(y, return_inverse=True)
    # Classes on a line, each but the last a little nearer to the next one.
    X = np.array([0.0, 10.0, 19.0, 27.0, 34.0])[true][:, None]
    codes, planted = audit.spoilt(X, y, 0.05, likely, np.random.default_rng(0))
    assert planted.sum() == 10
    np.testing.assert_array_equal(codes != true, planted)
    if likely:
        nearest = np.where(true == 4, 3, true + 1)
        np.testing.assert_array_equal(codes[planted], nearest[planted])
    found = np.flatnonzero(planted)[:5]
    judged = audit.judged(planted, lambda: (found, found))
    assert judged["precision"] == 1
    assert judged["recall"] == judged["precision at the planted count"] == 0.5
    assert_rounded(judged["F1"], 2 / 3)


# -- splits --------------------------------------------------------------------------------------


def test_splits_test_nothing_that_was_put_aside_or_learnt():
    y = np.repeat(list("abc"), (10, 20, 40))
    aside = np.tile([True, False], 35)
    table = tables.Table("t", np.zeros((70, 1)), y, aside, False)
    for learnt, tested in ((9, 5), (5, 50), (10, 3)):
        train, test = table.split(np.random.default_rng(learnt), learnt, tested)
        assert not aside[test].any()
        assert not set(train) & set(test)
        assert all((y[test] == name).sum() in range(1, tested + 1) for name in "abc")
        assert all((y[train] == name).sum() >= min(learnt, 9) for name in "abc")


def test_the_background_is_no_class():
    y = np.array(["a", tables.BACKGROUND, "b"])
    table = tables.Table("t", np.zeros((3, 1)), y, np.zeros(3, dtype=bool), False)
    assert table.classes.tolist() == ["a", "b"]


# -- a quick run ---------------------------------------------------------------------------------


def test_digits_need_no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    tables.look.cache_clear()
    found = strangers.measure(quick=True) + chances.measure(quick=True)
    rows = [one for one in found if isinstance(one, Row)]
    assert {one.where.partition(",")[0] for one in rows} == {"digits"}
    assert all(len(one.ours.values) == 2 for one in rows)
    absent = [one for one in found if isinstance(one, Absent)]
    assert any("is not in" in one.why for one in absent)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    pytest.importorskip("cv2", reason="pictures need the extra `images`")
    tables.look.cache_clear()
    with coarse_look(tmp_path_factory.mktemp("cache")):
        yield result_of(practice)
    tables.look.cache_clear()


@pytest.mark.slow
def test_practice_reports(result, tmp_path):
    report = practice.report(result, tmp_path)
    picture, numbers = report.files
    assert is_picture(picture)
    lines = read(numbers)
    assert len(lines) == sum(1 + len(one.peers) for one in result.rows)
    assert len(verdicts_of(report)) == len(result.rows) > 0
    held = {(line["question"], line["where"], line["measure"]): line["holds"] for line in lines}
    assert [held[one.question, one.where, one.measure] for one in result.rows] == [
        str(int(one.holds)) for one in result.rows
    ]
    assert "without --quick" in report.parts[0]


@pytest.mark.slow
def test_every_row_has_peers_in_the_same_splits(result):
    for one in result.rows:
        assert one.peers
        assert all(len(peer.values) == len(one.ours.values) == 2 for peer in one.peers.values())
        assert one.ours.seconds > 0
