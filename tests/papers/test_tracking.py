"""Object tracking: what the tracker computes, and what the experiment writes and concludes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quick_runs import is_picture, read, result_of, verdicts_of
from tolerance import SINGLE, assert_rounded
from typer.testing import CliRunner

from knowmore import Eigenspace
from knowmore.errors import InvalidInput, MissingData
from papers.command import app
from papers.data import tracked
from papers.eigenspaces import tracker, tracking
from papers.eigenspaces.tracking_report import (
    EVERYTHING,
    FIXED,
    SLIDING,
    Exactness,
    Track,
    Tracking,
    overlaps,
    table,
    verdicts,
)


@pytest.fixture(scope="module")
def result():
    return result_of(tracking)


# -- the tracker ---------------------------------------------------------------------------------


def test_patches_of_the_first_box_are_its_pixels():
    side = tracker.SIDE
    frame = np.random.default_rng(0).random((2 * side, 3 * side))
    state = np.array([[side + side / 2, side / 2 + 3, 0.0, 0.0, 0.0]])
    patch = tracker.patches_at(frame, state, [side, side])[0]
    np.testing.assert_allclose(patch.reshape(side, side), frame[3 : side + 3, side : 2 * side])


def test_patches_turn_and_grow_with_the_state():
    side = tracker.SIDE
    frame = np.random.default_rng(0).random((4 * side, 4 * side))
    centre = 2 * side
    quarter = np.array([[centre, centre, 0.0, np.pi / 2, 0.0]])
    upright = frame[centre - side // 2 :, centre - side // 2 :][:side, :side]
    patch = tracker.patches_at(frame, quarter, [side, side])[0].reshape(side, side)
    # x goes down and y to the left.
    np.testing.assert_allclose(patch, np.rot90(upright), atol=SINGLE)
    flat = np.full((50, 50), 0.25)
    grown = np.array([[25.0, 25.0, 0.3, 0.2, 0.1]])
    np.testing.assert_allclose(tracker.patches_at(flat, grown, [20, 10]), 0.25)


def test_a_window_holds_the_latest_patches():
    rng, side = np.random.default_rng(0), tracker.SIDE
    patches = rng.random((1 + 7 * tracker.PORTION, side * side))
    memory = tracker.Memory(window=12)
    for patch in patches:
        memory.learn(patch)
    np.testing.assert_array_equal(memory.held, patches[-12:])
    assert memory.pca.n_samples_ == 12
    difference, tolerance = memory.difference()
    assert difference <= tolerance
    # The distance is that to the leading directions of a batch fit of these.
    batch = Eigenspace.of(patches[-12:], tracker.DIRECTIONS)
    wanted = batch.distances(patches[:5]) ** 2
    eps = np.finfo(np.float32).eps
    np.testing.assert_allclose(memory.distances(patches[:5]), wanted, rtol=1000 * eps)


def test_a_fixed_memory_stops_and_another_goes_on():
    rng = np.random.default_rng(0)
    fixed, everything = tracker.Memory(until=6), tracker.Memory()
    for patch in rng.random((21, tracker.SIDE**2)):
        fixed.learn(patch)
        everything.learn(patch)
    assert (fixed.pca.n_samples_, everything.pca.n_samples_) == (6, 21)


def test_a_square_that_moves_is_followed():
    rng, size = np.random.default_rng(0), 20
    texture, ground = rng.random((size, size)), 0.2 * rng.random((70, 90))
    frames, boxes = [], []
    for t in range(25):
        x, y = 10 + 2 * t, 20 + t // 2
        frame = ground.copy()
        frame[y : y + size, x : x + size] = texture
        frames.append(frame)
        boxes.append((x, y, size, size))
    found, again = (
        tracker.follow(
            np.stack(frames), np.array(boxes[0]), tracker.Memory(10), 200, np.random.default_rng(1)
        )
        for _ in range(2)
    )
    assert overlaps(found, np.array(boxes)).min() > 0.7
    np.testing.assert_array_equal(found, again)


def test_overlap_of_boxes():
    one = np.array([[0.0, 0.0, 4.0, 2.0]])
    for other, wanted in (
        ([0, 0, 4, 2], 1.0),
        ([2, 0, 4, 2], 1 / 3),
        ([4, 0, 4, 2], 0.0),
        ([9, 9, 1, 1], 0.0),
        ([1, 0.5, 2, 1], 0.25),
    ):
        assert_rounded(overlaps(one, np.array([other], dtype=float))[0], wanted, scale=1.0)


# -- the data ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("film", "shape"), [("car4", (659, 120, 180)), ("david", (471, 150, 200))])
def test_films_are_whole(film, shape):
    pytest.importorskip("PIL")
    try:
        seen = tracked(film)
    except MissingData as error:
        pytest.skip(str(error))
    assert seen.frames.shape == shape
    assert 0 <= seen.frames.min() < seen.frames.max() <= 1
    assert seen.boxes.shape == (shape[0], 4)
    assert (seen.boxes[:, 2:] > 10).all()


def test_an_unknown_film_is_told():
    with pytest.raises(InvalidInput) as error:
        tracked("dudek")
    assert str(error.value) == "film='dudek' is not known. Choose 'car4' or 'david'."


def test_absent_films_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    result = CliRunner().invoke(app, ["tracking", "--quick", "--out", str(tmp_path)])
    assert isinstance(result.exception, MissingData)
    assert "'tracking_car4.tar' is not in" in str(result.exception)


# -- the experiment ------------------------------------------------------------------------------


@pytest.mark.slow
def test_all_trackers_see_all_pictures(result):
    assert result.films == ["car4", "david"]
    assert result.methods[:3] == [SLIDING, EVERYTHING, FIXED]
    for one in result.tracks:
        assert one.boxes.shape == one.truth.shape == (40, 4)
        assert one.overlap[0] > 0.9
    for film in result.films:
        assert result.overlap(film, SLIDING).min() > 0.6


@pytest.mark.slow
def test_tracking_reports(result, tmp_path):
    report = tracking.report(result, tmp_path)
    picture, car, face, numbers = report.files
    assert is_picture(picture)
    for film in car, face:
        assert film.read_bytes().startswith(b"GIF89a")
    assert len(read(numbers)) == sum(len(one.boxes) for one in result.tracks)
    *_, exact = verdicts_of(report)
    assert exact.holds
    assert "without --quick" in report.parts[0]


def test_verdicts_follow_the_boxes():
    truth = np.tile([10.0, 10.0, 20.0, 20.0], (5, 1))

    def invented(shifts, difference):
        tracks = tuple(
            Track("car4", method, run, truth + np.array([shift + 0.1 * run, 0, 0, 0]), truth, 0.1)
            for method, shift in zip((SLIDING, EVERYTHING, FIXED, "other"), shifts, strict=True)
            for run in range(2)
        )
        return Tracking(tracks, (Exactness("car4", difference, 1e-9),), 5, ())

    good, bad = invented((0, 2, 4, 6), 1e-12), invented((25, 2, 4, 6), 1e-6)
    assert [one.holds for one in verdicts(good)] == [True] * 5
    assert [one.holds for one in verdicts(bad)] == [False] * 5
    assert table(good).rows[0][1:5] == ("0.995", "100.0%", "0.1", "0.0%")
    alone = replace(good, tracks=tuple(one for one in good.tracks if one.run == 0))
    assert [one.holds for one in verdicts(alone)] == [True] * 5
