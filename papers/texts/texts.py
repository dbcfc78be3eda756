"""Texts of a few classes and of many, as `knowmore learn` takes them; peers on the same splits.

Ours is what the command makes: the vectors of `TextVectors` and the kernel of models of texts. The
peer that most would take is logistic regression on TF-IDF, its C by cross-validation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier

import knowmore
from knowmore import GPClassifier
from knowmore._base import optional
from knowmore.insight import novelty
from knowmore.texts import TextDescriber, TextVectors
from knowmore.workbench import TEXT_KERNEL, LearnOptions, Predictor, learn
from papers.arrays import Array
from papers.data import Prose, fortunes, glosses, mails
from papers.findings import Progress, Report, Table, silent, write_csv
from papers.practice.audit import cleanlab_of_ours, judged, spoilt, suspected
from papers.practice.peers import softmax_novelty
from papers.practice.practice import Practice, report_of
from papers.practice.rows import Absent, Found, Row, Tally, attempted, part
from papers.stopwatch import one_thread

_OURS = "knowmore"
_COSTS, _FOLDS = (0.1, 1.0, 10.0, 100.0), 3
# Texts of each class that are learnt, and that are tested.
_SETS: dict[Callable[[], Prose], tuple[int, int]] = {
    fortunes: (40, 40),
    mails: (200, 400),
    glosses: (40, 40),
}
_QUICK = 12, 10
# How many classes are known before the others arrive, one by one, with so few texts each.
_FIRST, _FEW = 2, 20
_WRONG = (0.05, 0.2)
# Texts of one model whose size and times are measured.
_MANY = 2000
_FOREIGN = 200


@cache
def _vectors(model: str | None, source: Callable[[], Prose]) -> tuple[Prose, Array]:
    prose = source()
    return prose, TextVectors(model).transform(prose.texts)


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Practice:
    """All questions for each set, by words and by letters; `quick`: one set, two splits."""
    sets = {fortunes: _QUICK} if quick else _SETS
    # The usual vectors, and those without a model of words.
    models = [*dict.fromkeys([TextDescriber.usual().model, None])][: 1 if quick else None]
    cases = [(source, sizes, model) for source, sizes in sets.items() for model in models]
    found: Found = []
    with one_thread():
        for i, (source, sizes, model) in enumerate(cases):
            told = part(progress, source.__name__, i / len(cases), (i + 1) / len(cases))
            for act in (_rows, _audits):
                ask = partial(act, source, sizes, model, seed, quick, told)
                found += attempted(f"{source.__name__}, {act.__name__[1:]}", ask)
                told = silent
    _vectors.cache_clear()
    rows = tuple(one for one in found if isinstance(one, Row))
    return Practice(rows, tuple(one for one in found if isinstance(one, Absent)), quick)


def _rows(
    source: Callable[[], Prose],
    sizes: tuple[int, int],
    model: str | None,
    seed: int,
    quick: bool,
    progress: Progress,
) -> Iterator[Row]:
    progress(0.0, "reading")
    prose, X = _vectors(model, source)
    where = _named(prose, model)
    # Peers begin anew at each arrival, which takes long: the usual vectors are enough.
    arrive_one_by_one = (
        len(np.unique(prose.labels)) > _FIRST and model == TextDescriber.usual().model
    )
    rng, splits = np.random.default_rng(seed), 2 if quick else 5
    accuracy, arrivals, foreign = Tally(), Tally(), Tally()
    for split in range(splits):
        progress(split / splits, f"split {split + 1}")
        train, test = prose.split(rng, *sizes)
        for way, ask in _classifiers(prose, X, train, test).items():
            accuracy.timed(split, way, partial(_accuracy, prose, test, ask))
        order = rng.permutation(np.unique(prose.labels))
        if arrive_one_by_one:
            few, asked = prose.split(rng, min(_FEW, sizes[0]), sizes[1])
            for way, arrive in _arrivals(prose, X, few, asked, order).items():
                arrivals.timed(split, way, partial(_mean, arrive))
        _strangers(foreign, split, prose, model, X, train, test, rng)
    yield from accuracy.rows("few texts", f"{where}, {sizes[0]} each", _OURS)
    if arrive_one_by_one:
        yield from arrivals.rows("class after class", f"{where}, {_FEW} each", _OURS)
    yield from foreign.rows("foreign texts", where, _OURS)


def _named(prose: Prose, model: str | None) -> str:
    return f"{prose.name}, {'words and letters' if model else 'letters'}"


def _accuracy(prose: Prose, rows: Array, ask: Callable[[], Array]) -> dict[str, float]:
    return {"accuracy": _right(prose, rows, ask())}


def _right(prose: Prose, rows: Array, said: Array) -> float:
    return float(np.mean(said == prose.labels[rows]))


def _mean(arrive: Callable[[], list[float]]) -> dict[str, float]:
    found = arrive()
    return {"mean accuracy": float(np.mean(found)), "accuracy at the end": found[-1]}


def _logistic() -> GridSearchCV:
    """Logistic regression of each class against the others, its C by cross-validation.

    One regression for all classes is as accurate on these texts, and takes five times as long.
    """
    model = OneVsRestClassifier(LogisticRegression(solver="liblinear"))
    return GridSearchCV(model, {"estimator__C": _COSTS}, cv=_FOLDS)


def _tfidf(prose: Prose, train: Array) -> TfidfVectorizer:
    return TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)).fit(prose.of(train))


def _classifiers(
    prose: Prose, X: Array, train: Array, test: Array
) -> dict[str, Callable[[], Array]]:
    """What each way says of the texts to test."""
    y = prose.labels[train]

    def by_tfidf() -> Array:
        words = _tfidf(prose, train)
        learnt = _logistic().fit(words.transform(prose.of(train)), y)
        return np.asarray(learnt.predict(words.transform(prose.of(test))))

    return {
        _OURS: lambda: GPClassifier(TEXT_KERNEL).fit(X[train], y).predict(X[test]),
        "logistic regression, TF-IDF": by_tfidf,
        "logistic regression, our vectors": lambda: _logistic().fit(X[train], y).predict(X[test]),
    }


def _arrivals(
    prose: Prose, X: Array, few: Array, asked: Array, order: Array
) -> dict[str, Callable[[], list[float]]]:
    """The accuracy of each way among the classes so far, after each arrival.

    Ours adds the texts of the new class; peers begin anew.
    """

    def of(rows: Array, names: Array) -> Array:
        return rows[np.isin(prose.labels[rows], names)]

    def ours() -> list[float]:
        first = of(few, order[:_FIRST])
        model, found = GPClassifier(TEXT_KERNEL).fit(X[first], prose.labels[first]), []
        for count in range(_FIRST, len(order)):
            new = of(few, order[count : count + 1])
            model.add(X[new], prose.labels[new])
            test = of(asked, order[: count + 1])
            found.append(_right(prose, test, model.predict(X[test])))
        return found

    def anew() -> list[float]:
        found = []
        for count in range(_FIRST, len(order)):
            train, test = (of(rows, order[: count + 1]) for rows in (few, asked))
            said = _classifiers(prose, X, train, test)["logistic regression, TF-IDF"]()
            found.append(_right(prose, test, said))
        return found

    return {_OURS: ours, "logistic regression, TF-IDF, anew": anew}


def _audits(
    source: Callable[[], Prose],
    sizes: tuple[int, int],
    model: str | None,
    seed: int,
    quick: bool,
    progress: Progress,
) -> Iterator[Row]:
    """A part of the labels are another class, any: which are suspected?"""
    issues = optional("cleanlab.filter", "bench").find_label_issues
    prose, X = _vectors(model, source)
    for wrong in _WRONG:
        rng, tally = np.random.default_rng(seed), Tally()
        for split in range(2 if quick else 5):
            train, _ = prose.split(rng, *sizes)
            codes, planted = spoilt(X[train], prose.labels[train], wrong, False, rng)
            given = X[train], codes, TEXT_KERNEL
            ways = {
                _OURS: partial(suspected, *given),
                "cleanlab, our probabilities": partial(cleanlab_of_ours, issues, *given),
            }
            for way, ask in ways.items():
                tally.timed(split, way, partial(_f1, planted, ask))
        where = f"{_named(prose, model)}, {100 * wrong:g} % wrong"
        yield from tally.rows("label audit", where, _OURS)


def _f1(planted: Array, ask: Callable[[], tuple[Array, Array]]) -> dict[str, float]:
    return {"F1": judged(planted, ask)["F1"]}


def _strangers(
    tally: Tally,
    split: int,
    prose: Prose,
    model: str | None,
    X: Array,
    train: Array,
    test: Array,
    rng: np.random.Generator,
) -> None:
    """Texts that are held out, and texts without one known word: are they told apart?"""
    y, strange = prose.labels[train], TextVectors(model).transform(_made_up(rng))
    asked = np.vstack([X[test], strange])
    is_new = np.repeat([False, True], [len(test), len(strange)])

    def judged_by(values: Array, least: float) -> dict[str, float]:
        unknown = values > least
        return {
            "AUROC": float(roc_auc_score(is_new, values)),
            "foreign ones that are unknown": float(unknown[is_new].mean()),
            "held-out ones that are not": float(1 - unknown[~is_new].mean()),
        }

    def ours() -> dict[str, float]:
        found = novelty(GPClassifier(TEXT_KERNEL).fit(X[train], y), asked, "variance")
        return judged_by(found.values, found.threshold(0.95))

    def peer() -> dict[str, float]:
        learnt = OneVsRestClassifier(LogisticRegression(solver="liblinear")).fit(X[train], y)
        least = float(np.quantile(softmax_novelty(learnt, X[test]), 0.95))
        return judged_by(softmax_novelty(learnt, asked), least)

    tally.timed(split, _OURS, ours)
    tally.timed(split, "softmax, its own 95 %", peer)


def _made_up(rng: np.random.Generator) -> list[str]:
    """Texts of words that there are not, of ten letters at most."""
    letters = [*"abcdefghijklmnopqrstuvwxyz"]

    def word() -> str:
        return "".join(rng.choice(letters, rng.integers(3, 11)))

    return [" ".join(word() for _ in range(rng.integers(3, 20))) for _ in range(_FOREIGN)]


# -- what it says --------------------------------------------------------------------------------


def report(result: Practice, out: Path) -> Report:
    """The picture, all figures, a verdict on each row, and what a model of many texts takes."""
    text = (
        "Few texts of each class, as `knowmore learn` takes them; peers on the same splits, five "
        "of them. Times are those of one fit and its answers."
    )
    found = report_of(result, text, out, "texts")
    costs = _costs(200 if result.quick else _MANY)
    header = ("texts", "seconds to learn", "megabytes", "ms for an answer")
    file = write_csv(out / "texts_costs.csv", header, [costs])
    shown = Table("What a model takes", header, (tuple(f"{one:.3g}" for one in costs),))
    return Report(parts=(*found.parts, shown), files=(*found.files, file))


def _costs(count: int) -> tuple[float, float, float, float]:
    """Texts, seconds to learn them by the command, megabytes of its file, and ms for an answer."""
    prose = fortunes()
    rows = np.random.default_rng(0).permutation(len(prose.texts))[: count + 100]
    with TemporaryDirectory() as folder:
        table, path = Path(folder) / "table.csv", Path(folder) / "m.km"
        pairs = [(prose.texts[i], prose.labels[i]) for i in rows[:count]]
        write_csv(table, ("text", "label"), pairs)
        begin = perf_counter()
        learn(LearnOptions(path, str(table), text="text"), lambda share, step: None)
        seconds, size = perf_counter() - begin, path.stat().st_size / 1e6
        with knowmore.open(path) as store:
            predictor, describer = Predictor(store, 0.05, keep=False), TextDescriber.usual()
            begin = perf_counter()
            for i in rows[count:]:
                (vector,) = describer.vectors([prose.texts[i]])
                predictor(np.array([vector]))
            each = 1000 * (perf_counter() - begin) / max(len(rows) - count, 1)
    return float(count), seconds, size, each
