"""Object tracking, an application of Kim's slides, on the films of Ross, Lim, Lin and Yang (2008).

A car drives under bridges; a face turns, and walks from the dark into the light. The tracker knows
the box in the first picture, and looks for it in the others. What the object looks like is an
eigenspace of its patches: of the latest ones, which learns new patches by merging and forgets old
ones by splitting; of all that ever were; or of the first ones alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from knowmore._base import optional
from papers.arrays import Array
from papers.data import Film, Filmed, tracked
from papers.eigenspaces.tracker import Memory, follow
from papers.eigenspaces.tracking_figure import draw, film
from papers.eigenspaces.tracking_report import (
    CAR,
    EVERYTHING,
    FACE,
    FIXED,
    SLIDING,
    Exactness,
    Track,
    Tracking,
    preface,
    table,
    verdicts,
)
from papers.findings import Progress, Report, save_figure, silent, write_csv
from papers.stopwatch import one_thread

_WINDOW, _PARTICLES, _RUNS, _FIRST = 60, 400, 3, 20
_QUICK_WINDOW, _QUICK_PARTICLES, _QUICK_RUNS, _QUICK_FRAMES = 20, 100, 1, 40
_FILMS: tuple[Film, ...] = (CAR, FACE)
# Trackers of OpenCV that need no model of their own. Which there are depends on the wheel.
_PEERS = ("MIL", "KCF", "CSRT")


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Tracking:
    """All trackers on both films; `quick`: the first pictures, with few particles."""
    window, runs = (_QUICK_WINDOW, _QUICK_RUNS) if quick else (_WINDOW, _RUNS)
    tracks: list[Track] = []
    exactness: list[Exactness] = []
    with one_thread():
        for i, name in enumerate(_FILMS):
            seen = tracked(name, _QUICK_FRAMES if quick else None)
            for number in range(runs):
                progress((i + number / (runs + 1)) / len(_FILMS), f"{name}, run {number + 1}")
                memories = _memories(window)
                particles = _QUICK_PARTICLES if quick else _PARTICLES
                for method, memory in memories.items():
                    rng = np.random.default_rng((seed, number))
                    tracks.append(_ours(seen, name, method, number, memory, particles, rng))
                if number == 0:
                    exactness.append(Exactness(name, *memories[SLIDING].difference()))
            progress((i + runs / (runs + 1)) / len(_FILMS), f"{name}, OpenCV")
            tracks += _theirs(seen, name, seed)
    there = _trackers()
    lacking = tuple(peer for peer in _PEERS if peer not in there)
    return Tracking(tuple(tracks), tuple(exactness), window, lacking, quick)


def report(result: Tracking, out: Path) -> Report:
    """The plot, a short film of each sequence, all numbers, a table and a verdict on each claim."""
    numbers = write_csv(
        out / "tracking.csv",
        ("film", "method", "run", "picture", "x", "y", "w", "h", "overlap", "pixels_off"),
        [
            (one.film, one.method, one.run, t, *box, overlap, distance)
            for one in result.tracks
            for t, (box, overlap, distance) in enumerate(
                zip(one.boxes, one.overlap, one.distance, strict=True)
            )
        ],
    )
    picture = save_figure(draw(result), out / "tracking.png")
    films = [
        film(
            result,
            name,
            tracked(name, len(result.of(name, SLIDING)[0].boxes)).frames,
            out / f"tracking-{name}.gif",
        )
        for name in _FILMS
    ]
    return Report(
        parts=(preface(result), table(result), *verdicts(result)),
        files=(picture, *films, numbers),
    )


def _memories(window: int) -> dict[str, Memory]:
    return {SLIDING: Memory(window), EVERYTHING: Memory(), FIXED: Memory(until=_FIRST)}


def _ours(
    seen: Filmed,
    name: str,
    method: str,
    number: int,
    memory: Memory,
    particles: int,
    rng: np.random.Generator,
) -> Track:
    begin = perf_counter()
    boxes = follow(seen.frames, seen.boxes[0], memory, particles, rng)
    return Track(name, method, number, boxes, seen.boxes, _each(begin, boxes))


def _each(begin: float, boxes: Array) -> float:
    return (perf_counter() - begin) / len(boxes)


# -- OpenCV --------------------------------------------------------------------------------------


def _trackers() -> dict[str, Callable[[], Any]]:
    """Constructors of OpenCV's trackers, as far as this build has them.

    From version 4.5 on, most are only in the wheel opencv-contrib.
    """
    cv2 = optional("cv2", "images")
    places = [cv2, getattr(cv2, "legacy", None)]
    found = {peer: [getattr(p, f"Tracker{peer}_create", None) for p in places] for peer in _PEERS}
    return {peer: next(filter(None, made)) for peer, made in found.items() if any(made)}


def _theirs(seen: Filmed, name: str, seed: int) -> Iterator[Track]:
    cv2 = optional("cv2", "images")
    pictures = [
        cv2.cvtColor((255 * one).astype(np.uint8), cv2.COLOR_GRAY2BGR) for one in seen.frames
    ]
    for peer, make in _trackers().items():
        cv2.setRNGSeed(seed)
        begin, tracker = perf_counter(), make()
        box = tuple(np.rint(seen.boxes[0]).astype(int).tolist())
        tracker.init(pictures[0], box)
        boxes = [seen.boxes[0]]
        for picture in pictures[1:]:
            found, box = tracker.update(picture)
            # Where it finds nothing, it is taken to stay.
            boxes.append(np.array(box, dtype=float) if found else boxes[-1])
        track = np.stack(boxes)
        yield Track(name, f"OpenCV {peer}", 0, track, seen.boxes, _each(begin, track))
