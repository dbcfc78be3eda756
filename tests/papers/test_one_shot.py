"""The experiments on one-shot learning at a reduced size: what they compute, write and conclude."""

from __future__ import annotations

import numpy as np
import pytest
from quick_runs import coarse_look, is_picture, read, result_of, verdicts_of
from tolerance import assert_rounded, assert_solves, rounded, tolerance
from typer.testing import CliRunner

from knowmore.errors import MissingData
from knowmore.transfer.choice import CRITERIA, balanced, squashed
from papers.command import app
from papers.one_shot import one_shot
from papers.one_shot.pictures import Seen
from papers.one_shot.report import verdicts
from papers.one_shot.result import (
    ADAPTED,
    FEW,
    FOREST,
    HINDSIGHT,
    INDEPENDENT,
    POOLED,
    RELATED,
    STRICT,
    THINGS,
    UNRELATED,
    UNSEEN,
    OneShot,
    Outcome,
    average,
    gain,
    transfer,
    undecided,
)
from papers.one_shot.tasks import BETAS, COSTS, Sizes, Split, Stage, split

BACK, SIZES = "back", Sizes(8, 5, (1, 3), 4)


@pytest.fixture(scope="module")
def seen():
    """Invented pictures of a background and three classes; two classes are alike."""
    rng = np.random.default_rng(0)
    centres = {BACK: (0, 0), "cat": (2, 0), "lynx": (2, 1), "nut": (-1, 2)}
    counts = {BACK: 14, "cat": 9, "lynx": 10, "nut": 9}
    labels = np.repeat(list(counts), list(counts.values()))
    X = np.array([centres[name] for name in labels]) + rng.normal(size=(len(labels), 2))
    gram = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 4)
    aside = np.zeros(len(labels), dtype=bool)
    aside[::7] = True
    return Seen(labels, gram, aside)


@pytest.fixture(scope="module")
def stage(seen):
    drawn = split(seen, BACK, ("cat", "nut"), SIZES, np.random.default_rng(1))
    return Stage(seen, 1e-3, drawn)


# -- what is drawn -------------------------------------------------------------------------------


def test_what_is_tested_is_neither_learnt_nor_put_aside(seen):
    for seed in range(5):
        drawn = split(seen, BACK, ("cat", "nut"), SIZES, np.random.default_rng(seed))
        assert set(drawn.supports) == {"cat", "lynx", "nut"}
        assert (len(drawn.background), set(seen.labels[drawn.background])) == (8, {BACK})
        for name, rows in drawn.supports.items():
            assert (len(set(rows)), set(seen.labels[rows])) == (5, {name})
        for learnt, tested, name in (
            (drawn.background, drawn.others, BACK),
            *((drawn.positives[t], drawn.tested[t], t) for t in ("cat", "nut")),
        ):
            assert set(seen.labels[tested]) == {name}
            assert not set(learnt) & set(tested)
            assert not seen.aside[tested].any()
            assert name == BACK or len(tested) <= SIZES.tested
        # Nothing is wasted: what is neither learnt nor put aside is tested.
        rest = np.setdiff1d(seen.rows(BACK), drawn.background)
        assert set(drawn.others) == set(rest[~seen.aside[rest]])


def test_the_noise_serves_all_pictures_of_a_split(seen):
    drawn = split(seen, BACK, ("cat", "nut"), SIZES, np.random.default_rng(1))
    assert Stage.of(seen, drawn).noise == 0.0
    twin = Split(drawn.background, drawn.others, drawn.supports, drawn.positives, drawn.tested)
    gram = seen.gram.copy()
    # A picture of the background once more among a support's pictures.
    one, other = drawn.background[0], drawn.supports["lynx"][0]
    gram[other], gram[:, other] = gram[one], gram[:, one]
    gram[other, other] = gram[one, one]
    doubled = Stage.of(Seen(seen.labels, gram, seen.aside), twin)
    assert doubled.noise > 0
    assert len(doubled.target("cat", 3).pairs) == 2


# -- what is learnt ------------------------------------------------------------------------------


def learnt(stage, name, positives):
    """Rows of the target and its labels, by hand."""
    rows = np.concatenate([stage.split.background, stage.split.positives[name][:positives]])
    return rows, np.repeat([-1.0, 1.0], [SIZES.background, positives])


@pytest.mark.parametrize("prior", [0.0, -1.0])
@pytest.mark.parametrize("positives", [1, 3])
@pytest.mark.parametrize("rho", [0.0, 0.6, 1.0])
def test_scores_are_those_of_one_large_process(seen, stage, positives, rho, prior):
    target, (rows, y) = stage.target("cat", positives), learnt(stage, "cat", positives)
    target = target.expecting(prior)
    help_, asked = stage.split.supports["lynx"], target.asked
    both = np.concatenate([rows, help_])
    same = np.equal.outer(*[np.arange(len(both)) < len(rows)] * 2)
    K = seen.gram[np.ix_(both, both)] * np.where(same, 1.0, rho) + 1e-3 * np.eye(len(both))
    k = seen.gram[np.ix_(both, asked)] * np.where(np.arange(len(both)) < len(rows), 1, rho)[:, None]
    T = np.concatenate([y, np.ones(len(help_))])[:, None] - prior
    want = prior + (k.T @ np.linalg.solve(K, T))[:, 0]
    assert_solves(target.helped("lynx", rho)[:, None], want[:, None], K, T, left=k)
    if rho == 0:
        assert_solves(target.alone()[:, None], want[:, None], K, T, left=k)
    assert "cat" not in target.pairs
    assert target.pooled("ap")["lynx"].rho == 1
    other = target.helped("nut", 0.3)
    mean = target.averaged([("lynx", rho), ("nut", 0.3)])
    assert_rounded(mean, (target.helped("lynx", rho) + other) / 2)


def machine(K, y, C, t=0.0):
    """a and b of a weighted LS-SVM that starts from scores t, by its bordered system."""
    n = len(K)
    M = np.ones((n + 1, n + 1))
    M[:n, :n] = K + np.diag(1 / (C * balanced(y)))
    M[n, n] = 0
    solution = np.linalg.solve(M, np.append(y - t, 0.0))
    return solution[:n], solution[n], M


def left_out(K, y, C, t):
    """What each example is given by the machine of the others; weights stay those of all."""
    M, n, found = machine(K, y, C)[2], len(y), []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        rows = np.append(rest, n)
        solved = np.linalg.solve(M[np.ix_(rows, rows)], np.append((y - t)[rest], 0.0))
        found.append(K[i, rest] @ solved[:-1] + solved[-1] + t[i])
    return np.array(found)


@pytest.mark.parametrize("unseen", [False, True])
def test_adapted_machines_are_the_best_of_all_by_refits(seen, stage, unseen):
    target, (rows, y) = stage.target("cat", 3), learnt(stage, "cat", 3)
    K = seen.gram[np.ix_(rows, rows)]
    tried = {}
    for C in COSTS:
        for name in ("lynx", "nut"):
            theirs = np.concatenate([stage.split.background, stage.split.supports[name]])
            labels, G = np.repeat([-1.0, 1.0], [8, 5]), seen.gram[np.ix_(theirs, theirs)]
            a, b, _ = machine(G, labels, C)
            t = a @ seen.gram[theirs] + b
            if unseen:
                t[theirs] = left_out(G, labels, C, np.zeros(len(labels)))
            for beta in BETAS:
                value = squashed(y, left_out(K, y, C, beta * t[rows]), balanced(y))
                tried[C, name, beta] = float(value), t
    got_name, prior, scores = target.adapted(unseen=unseen)
    best = max(value for value, _ in tried.values())
    assert prior.value == rounded(best)
    C = next(C for C in COSTS if tried[C, got_name, prior.beta][0] == rounded(best))
    t = tried[C, got_name, prior.beta][1]
    a, b, M = machine(K, y, C, prior.beta * t[rows])
    want = a @ seen.gram[np.ix_(rows, target.asked)] + b + prior.beta * t[target.asked]
    scale = np.linalg.norm(np.linalg.inv(M), 2) * np.linalg.norm(y) + abs(want).max()
    assert_rounded(scores, want, 2 * tolerance(M) / np.finfo(float).eps, scale)


def test_scores_are_judged_on_both_classes_alike(stage):
    target = stage.target("cat", 1)
    mine = len(stage.split.tested["cat"])
    others = len(target.asked) - mine
    perfect = np.repeat([1.0, -1.0], [mine, others])
    assert target.judged(perfect) == (1.0, 1.0)
    assert target.judged(np.ones(len(perfect))).rate == rounded(0.5)
    # The first of the class below all others: a rank of `mine` hits, the last behind everything.
    low = perfect.copy()
    low[0] = -2
    expected = ((mine - 1) + mine / len(perfect)) / mine
    assert target.judged(low).ap == rounded(expected)
    assert target.judged(low).rate == rounded((1 + (mine - 1) / mine) / 2)


# -- a quick run ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """With a cache of its own."""
    pytest.importorskip("cv2", reason="pictures need the extra `images`")
    with coarse_look(tmp_path_factory.mktemp("cache")):
        yield result_of(one_shot)


@pytest.mark.slow
def test_every_way_in_every_task_and_split(quick):
    assert quick.tasks(THINGS) == list(one_shot.NAMED)
    sources = (THINGS, FOREST, RELATED, UNRELATED)
    assert quick.noises == dict.fromkeys(sources, (0.0,))
    for source in sources:
        for positives in quick.positives(source):
            ways = quick.ways(source, positives)
            assert {INDEPENDENT, POOLED, transfer(), transfer(criterion="lpp")} <= set(ways)
            assert {average(), undecided(INDEPENDENT), undecided(transfer())} <= set(ways)
            few = source in (RELATED, UNRELATED) or (source, positives) == (THINGS, 1)
            assert ({ADAPTED, UNSEEN} <= set(ways)) == few
            for way in ways:
                shape = len(quick.tasks(source)), quick.splits(source)
                for measure in "ap", "rate":
                    values = quick.values(source, positives, way, measure)
                    assert values.shape == shape
                    assert ((values >= 0) & (values <= 1)).all()
    first = quick.ways(THINGS, 1)
    assert {transfer(criterion=name) for name in CRITERIA} <= set(first)
    assert {transfer(FEW, search="golden"), HINDSIGHT, transfer(STRICT)} <= set(first)
    assert {average(FEW), undecided(transfer(FEW))} <= set(first)


@pytest.mark.slow
def test_choices_are_among_what_was_left(quick):
    for one in quick.outcomes:
        assert one.support != one.task
        assert 0 <= one.rho <= 1
        assert (one.support == "") == (one.kind == "independent")
        assert one.kind != "pooled" or one.rho == 1
    for task in quick.tasks(THINGS):
        found = {K: quick.of(THINGS, 1, transfer(K))[task] for K in (1, STRICT, FEW, None)}
        # WordNet alone chooses, and says the same in every split.
        assert len({one.support for one in found[1]}) == 1
        # The more there is to choose from, the better the best.
        for fewer, more in zip(*(list(found.values())[i:][:3] for i in (0, 1)), strict=True):
            pairs = zip(fewer, more, strict=True)
            assert all(a.left_out <= b.left_out for a, b in pairs)
    hindsight, chosen = (quick.values(THINGS, 1, way) for way in (HINDSIGHT, transfer()))
    assert (hindsight >= chosen).all()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_splits(quick):
    seeds = np.random.SeedSequence(0).spawn(8)
    plan = one_shot._set(RELATED, one_shot._QUICK)
    again = one_shot._learnt(plan, 0, seeds[4])
    before = [one for one in quick.outcomes if one.source == RELATED and one.split == 0]
    assert [one[:10] for one in again.outcomes] == [one[:10] for one in before]
    assert_rounded([one.ap for one in again.outcomes], [one.ap for one in before])


@pytest.mark.slow
def test_reports(quick, tmp_path):
    report = one_shot.report(quick, tmp_path)
    *pictures, numbers = report.files
    assert len(pictures) == 2
    assert all(is_picture(path) for path in pictures)
    rows = read(numbers)
    assert len(rows) == len(quick.outcomes)
    assert float(rows[-1]["ap"]) == quick.outcomes[-1].ap
    assert "without --quick" in report.parts[0]
    assert len(verdicts_of(report)) == 9


def test_absent_data_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    result = CliRunner().invoke(app, ["one-shot", "--quick", "--out", str(tmp_path)])
    assert isinstance(result.exception, MissingData)
    assert "'caltech101.tar' is not in" in str(result.exception)


# -- what is said --------------------------------------------------------------------------------


def invented(ways):
    """Outcomes of three tasks in four splits: a way and its value, which varies a little."""
    outcomes = []
    for (source, positives, way), value in ways.items():
        for t in range(3):
            for number in range(4):
                found = value + 0.01 * t + 0.001 * (number % 2)
                choice = ("x", 0.5, found, found, found)
                outcomes.append(Outcome(source, f"t{t}", number, positives, *way, *choice))
    return OneShot(tuple(outcomes), {}, {}, {}, 100)


def claims(**changed):
    """Values under which every claim holds, but for some."""
    names = {name for name in CRITERIA if name != "ap"}
    values = {
        "alone": 0.4,
        "transfer": 0.6,
        "few": 0.7,
        "strict": 0.65,
        "late": 0.61,
        "adapted": 0.55,
        "unseen": 0.55,
        "others": 0.5,
        "average": 0.65,
        "late average": 0.6,
    } | changed
    ways = {
        (THINGS, 1, INDEPENDENT): values["alone"],
        (THINGS, 1, POOLED): 0.5,
        (THINGS, 1, transfer()): values["transfer"],
        (THINGS, 1, transfer(FEW)): values["few"],
        (THINGS, 1, transfer(STRICT)): values["strict"],
        (THINGS, 9, INDEPENDENT): 0.6,
        (THINGS, 9, transfer()): values["late"],
        (THINGS, 9, transfer(FEW)): 0.6,
        (THINGS, 9, transfer(STRICT)): 0.6,
    }
    for way in INDEPENDENT, transfer():
        ways[THINGS, 1, undecided(way)] = 0.3
        ways[FOREST, 1, way] = 0.5
    ways[FOREST, 1, average()] = ways[THINGS, 1, average()] = values["average"]
    ways[THINGS, 9, average()] = values["late average"]
    ways |= {(THINGS, 1, transfer(criterion=name)): values["others"] for name in names}
    ways[THINGS, 1, transfer(FEW, "weighted")] = 0.5
    for source in RELATED, UNRELATED:
        ways[source, 1, INDEPENDENT] = values["alone"]
        ways[source, 1, ADAPTED] = values["adapted"]
        ways[source, 1, UNSEEN] = values["unseen"]
        ways[source, 1, transfer()] = 0.6
    return [one.holds for one in verdicts(invented(ways))]


@pytest.mark.parametrize(
    ("changed", "broken"),
    [
        ({}, []),
        ({"alone": 0.8}, [0, 1, 3, 4]),
        ({"average": 0.35}, [1]),
        ({"late average": 0.5}, [1]),
        ({"late": 0.9}, [2]),
        ({"few": 0.5, "strict": 0.4}, [5]),
        ({"strict": 0.75}, [6]),
        ({"adapted": 0.65}, [7]),
        ({"unseen": 0.65}, [7]),
        ({"others": 0.65}, [8]),
    ],
)
def test_verdicts_follow_the_numbers(changed, broken):
    holds = claims(**changed)
    assert [i for i, one in enumerate(holds) if not one] == broken


def test_errors_are_of_paired_differences():
    rng = np.random.default_rng(0)
    D = rng.normal(0.1, 0.05, size=(5, 7)) + rng.normal(size=(5, 1))
    found = gain(D)
    assert found.mean == rounded(D.mean())
    assert found.over_tasks == rounded(np.std(D.mean(axis=1), ddof=1) / np.sqrt(5))
    assert found.over_splits == rounded(np.std(D.mean(axis=0), ddof=1) / np.sqrt(7))
    assert found.error == max(found.over_tasks, found.over_splits)
    assert gain(np.full((2, 3), 0.1)).is_clear
    assert not gain(np.array([[0.4, 0.4], [-0.2, -0.2]])).is_clear
