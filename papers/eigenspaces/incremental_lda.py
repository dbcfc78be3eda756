"""Discriminants learnt bit by bit, after Kim, Stenger, Kittler and Cipolla (IJCV 2011).

Faces (ORL), animals (visual words of Animals with Attributes) and things (visual words of the
largest categories of Caltech-101, up to 800 pictures of one, as in Kim's slides) arrive in portions
of rows, or class after class. After each portion the updated `EigenspaceLDA` is held against the
same fitted from scratch on everything so far, and against scikit-learn's LDA, on held-out rows of
the classes known by then. Faces and animals have fewer rows than features: scikit-learn's solver
"svd" then looks only at directions along which rows of one class differ, and at all of them; ours
at the leading ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, final

import numpy as np
from scipy.linalg import subspace_angles
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from knowmore import EigenspaceLDA
from knowmore._base import user_folder
from knowmore.images import Cache, learn_codebook
from papers.arrays import Array
from papers.data import animals_with_attributes, caltech101, orl_faces
from papers.eigenspaces.incremental_lda_figure import draw
from papers.eigenspaces.incremental_lda_report import (
    ANIMALS,
    CLASSES,
    FACES,
    FORGOTTEN,
    LEARNT,
    PEER_CHECK,
    ROWS,
    THINGS,
    Arrival,
    Check,
    IncrementalLDA,
    Measure,
    Step,
    check_table,
    late_classes,
    preface,
    step_table,
    verdicts,
    worst_moment,
)
from papers.findings import Progress, Report, save_figure, silent, write_csv
from papers.held_out import in_order
from papers.picture_features import FINE_STEP, WORDS, bag, features, sift
from papers.stopwatch import one_thread

_RANK, _SPLITS, _PORTIONS = 100, 3, 8
_QUICK_RANK, _QUICK_SPLITS, _QUICK_PORTIONS, _QUICK_CLASSES = 40, 1, 5, 15
# The largest categories of Caltech-101, and how many pictures of each the words are learnt from;
# these are in no test. Four of five pictures are learnt.
_CATEGORIES, _ASIDE, _PART = 15, 20, 0.8
_QUICK_PICTURES, _QUICK_ASIDE = 20, 4


@final
@dataclass(frozen=True, eq=False)
class _Source:
    """Rows X (n, D) with labels y (n,); `learnt` rows of each class are for training.

    Below one, `learnt` is a part of each class. `aside` are rows that may not be tested.
    """

    name: str
    X: Array
    y: Array
    learnt: float
    aside: Array

    def split(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Rows to learn from, in random order, and the others."""
        order = rng.permutation(len(self.y))
        # Those that may not be tested come first in each class.
        order = order[np.argsort(~self.aside[order], kind="stable")]
        train = []
        for name in np.unique(self.y):
            mine = order[self.y[order] == name]
            train.append(mine[: round(len(mine) * self.learnt if self.learnt < 1 else self.learnt)])
        return rng.permutation(np.concatenate(train)), np.setdiff1d(order, np.concatenate(train))

    def classes(self, rng: np.random.Generator) -> Array:
        """All classes in random order."""
        return np.asarray(rng.permutation(np.unique(self.y)))


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> IncrementalLDA:
    """Learn in both orders from some splits, on one thread; `quick`: few classes and portions."""
    rng = np.random.default_rng(seed)
    portions, rank = (_QUICK_PORTIONS, _QUICK_RANK) if quick else (_PORTIONS, _RANK)
    progress(0.0, "looking")
    sources = [_few(one) if quick else one for one in (_faces(), _animals())]
    sources.append(_things(quick))
    # Classes arrive in the same order in all splits of a source: so the steps have the same sizes.
    splits = [
        (source, i, *source.split(rng), classes)
        for source, classes in [(source, source.classes(rng)) for source in sources]
        for i in range(_QUICK_SPLITS if quick else _SPLITS)
    ]
    steps: list[Step] = []
    checks: list[Check] = []
    with one_thread():
        for done, (source, i, train, test, classes) in enumerate(splits):
            progress(done / len(splits), f"{source.name}, split {i + 1}")
            for order in ROWS, CLASSES:
                arriving = list(_arriving(source, train, order, portions, classes))
                steps += _steps(source, order, i, arriving, test, rank)
            if i == 0:
                progress((done + 0.5) / len(splits), f"{source.name}, exactness")
                checks += _checks(source, list(np.array_split(train, portions)), test, rank)
    return IncrementalLDA(tuple(steps), tuple(checks), rank)


def _arriving(
    source: _Source, train: Array, order: str, portions: int, classes: Array
) -> Iterator[Array]:
    """The rows of each portion."""
    if order == ROWS:
        yield from np.array_split(train, portions)
    else:
        for some in np.array_split(classes, portions):
            yield train[np.isin(source.y[train], some)]


# -- learning bit by bit -------------------------------------------------------------------------


def _steps(
    source: _Source, order: str, split: int, arriving: list[Array], test: Array, rank: int
) -> Iterator[Step]:
    X, y = source.X, source.y
    grown, held = EigenspaceLDA(rank=rank), np.empty(0, dtype=np.int64)
    known: Array = y[:0]
    for rows in arriving:
        older = test[np.isin(y[test], known)]
        before = _accuracy(grown, X[older], y[older])
        held = np.concatenate([held, rows])
        _, update = _timed(grown.partial_fit, X[rows], y[rows])
        batch, from_scratch = _timed(EigenspaceLDA(rank=rank).fit, X[held], y[held])
        peer, theirs = _timed(LinearDiscriminantAnalysis().fit, X[held], y[held])
        asked = test[np.isin(y[test], y[held])]
        new = np.setdiff1d(asked, older)
        Z, wanted = X[asked], y[asked]
        yield Step(
            source=source.name,
            order=order,
            split=split,
            n=len(held),
            classes=len(grown.classes_),
            asked=len(asked),
            update=Measure(update, _accuracy(grown, Z, wanted)),
            batch=Measure(from_scratch, _accuracy(batch, Z, wanted)),
            peer=Measure(theirs, _accuracy(peer, Z, wanted)),
            arrival=Arrival(
                _accuracy(grown, X[new], y[new]), before, _accuracy(grown, X[older], y[older])
            ),
            changed=int((grown.predict(Z) != batch.predict(Z)).sum()),
            angle=float(subspace_angles(grown.scalings_, batch.scalings_).mean()),
        )
        known = grown.classes_


def _timed(learn: Callable[[Array, Array], Any], X: Array, y: Array) -> tuple[Any, float]:
    """The model and its seconds, discriminants included. Once: the splits are the repetitions."""
    begin = perf_counter()
    model = learn(X, y)
    _ = model.scalings_
    return model, perf_counter() - begin


def _accuracy(model: Any, X: Array, y: Array) -> float:
    return float(model.score(X, y)) if len(y) else float("nan")


# -- is it the same model? -----------------------------------------------------------------------


def _checks(source: _Source, arriving: list[Array], test: Array, rank: int) -> Iterator[Check]:
    """Learning in portions, then forgetting the first class, each against a fresh fit."""
    X, y = source.X, source.y
    held = np.concatenate(arriving)
    gone = y[held] == y[held[0]]
    for kept in (rank, None):
        grown = EigenspaceLDA(rank=kept)
        for rows in arriving:
            grown.partial_fit(X[rows], y[rows])
        batch = EigenspaceLDA(rank=kept).fit(X[held], y[held])
        yield _check(source, LEARNT, grown, batch, test)
        if kept is not None:
            yield _check(source, PEER_CHECK, _Pipeline(X[held], y[held], kept), batch, test)
        grown.forget(X[held[gone]], y[held[gone]])
        rest = EigenspaceLDA(rank=kept).fit(X[held[~gone]], y[held[~gone]])
        yield _check(source, FORGOTTEN, grown, rest, test[y[test] != y[held[0]]])


@final
class _Pipeline:
    """scikit-learn's PCA and then LDA: a given rank, but not regularised by what was dropped."""

    def __init__(self, X: Array, y: Array, rank: int) -> None:
        self.pca = PCA(rank, svd_solver="full").fit(X)
        self.lda = LinearDiscriminantAnalysis().fit(self.pca.transform(X), y)
        self.scalings_: Array = self.pca.components_.T @ self.lda.scalings_

    def predict(self, X: Array) -> Array:
        return np.asarray(self.lda.predict(self.pca.transform(X)))


def _check(
    source: _Source, what: str, one: EigenspaceLDA | _Pipeline, batch: EigenspaceLDA, test: Array
) -> Check:
    X, wanted = source.X[test], source.y[test]
    mine, theirs = one.predict(X), batch.predict(X)
    total = batch.total_
    condition = float(total.variances[0] / total.variances[-1])
    return Check(
        source=source.name,
        what=what,
        directions=len(total.variances),
        discarded=total.discarded / total.total_variance,
        angle=float(subspace_angles(one.scalings_, batch.scalings_).max()),
        # The eigenspaces agree to some roundings; whitening divides by the least of them.
        tolerance=total.n_samples * float(np.finfo(float).eps) * condition,
        changed=int((mine != theirs).sum()),
        asked=len(test),
        accuracy=float((mine == wanted).mean()),
        batch_accuracy=float((theirs == wanted).mean()),
    )


# -- the data ------------------------------------------------------------------------------------


def _faces() -> _Source:
    """Six pictures of each person to learn, four to ask for."""
    faces = orl_faces()
    return _plain(FACES, faces.X, faces.labels, learnt=6)


def _animals() -> _Source:
    """SURF words as parts of all words in a picture, square-rooted; thirty of each animal."""
    animals = animals_with_attributes("surf")
    counts = animals.X
    X = np.sqrt(counts / counts.sum(axis=1, keepdims=True))
    return _plain(ANIMALS, X, animals.labels, learnt=30)


def _things(quick: bool) -> _Source:
    """Bags of visual words of the largest categories, as parts of all words, square-rooted."""
    pictures = caltech101()
    names, counts = np.unique(pictures.labels, return_counts=True)
    largest = names[np.argsort(-counts, kind="stable")[:_CATEGORIES]]
    most, few = (_QUICK_PICTURES, _QUICK_ASIDE) if quick else (None, _ASIDE)
    groups = [in_order(np.flatnonzero(pictures.labels == name))[:most] for name in largest]
    aside, rows = np.concatenate([np.arange(len(g)) < few for g in groups]), np.concatenate(groups)
    local = sift(FINE_STEP)
    with Cache(user_folder()) as cache:
        words = learn_codebook(list(pictures.X[rows[aside]]), size=WORDS, sift=local, cache=cache)
    X = features(list(pictures.X[rows]), (local, words, bag()))
    return _Source(THINGS, np.sqrt(X), pictures.labels[rows], _PART, aside)


def _plain(name: str, X: Array, y: Array, learnt: int) -> _Source:
    return _Source(name, X, y, learnt, np.zeros(len(y), dtype=bool))


def _few(source: _Source) -> _Source:
    chosen = np.isin(source.y, np.unique(source.y)[:_QUICK_CLASSES])
    return _plain(source.name, source.X[chosen], source.y[chosen], int(source.learnt))


def report(result: IncrementalLDA, out: Path) -> Report:
    """The picture, all numbers, and a verdict on each claim."""
    names = ("update", "batch", "scikit_learn")
    steps = write_csv(
        out / "incremental-lda.csv",
        (
            *("source", "order", "split", "n", "classes", "asked"),
            *(f"{name}_{what}" for name in names for what in Measure._fields),
            *Arrival._fields,
            *("changed", "angle"),
        ),
        [
            (
                *(s.source, s.order, s.split, s.n, s.classes, s.asked),
                *(*s.update, *s.batch, *s.peer, *s.arrival),
                *(s.changed, s.angle),
            )
            for s in result.steps
        ],
    )
    checks = write_csv(out / "incremental-lda-checks.csv", Check._fields, result.checks)
    picture = save_figure(draw(result), out / "incremental-lda.png")
    return Report(
        parts=(
            preface(result),
            step_table(result),
            late_classes(result),
            worst_moment(result),
            check_table(result),
            *verdicts(result),
        ),
        files=(picture, steps, checks),
    )
