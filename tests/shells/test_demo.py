"""The demonstration at a reduced size: what it computes, what it writes, what it concludes."""

from __future__ import annotations

from shlex import split
from types import SimpleNamespace

import numpy as np
import pytest
from tolerance import assert_solves, tolerance
from typer.testing import CliRunner

import knowmore
from knowmore.cli import demo, experiments
from knowmore.cli.app import app
from knowmore.cli.demo import audit, forget, grow, load, unlearn
from knowmore.cli.experiments import ResultTable, silent


def coded(y):
    """Targets (n, 10), one-vs-all."""
    return np.where(y[:, None] == np.arange(10), 1.0, -1.0)


@pytest.fixture(scope="module")
def digits():
    return load(seed=0, examples=300)


@pytest.fixture(scope="module")
def grown(digits):
    return grow(digits, silent)


def test_reports_are_printed_in_whole_lines_where_nobody_sees_a_terminal(
    monkeypatch, tmp_path, capsys
):
    sentence = " ".join(["word"] * 100)
    made = SimpleNamespace(
        run=lambda **options: None,
        report=lambda result, out: experiments.Report(parts=(sentence,), files=()),
    )
    monkeypatch.setattr(experiments, "import_module", lambda name: made)
    experiments.present("made up", tmp_path, 0, True)
    assert capsys.readouterr().out == f"\n{sentence}\n\n"


def score_bound(clf, digits, kept=slice(None)):
    """Bound of rounding on the difference between the scores of two solves."""
    K = clf.kernel_(digits.X[kept]) + clf.noise_ * np.eye(len(digits.X[kept]))
    A = np.linalg.solve(K, coded(digits.y[kept]))
    k = clf.kernel_(digits.X[kept], digits.X_test)
    return 2 * tolerance(K) * np.linalg.norm(A, axis=0).max() * np.linalg.norm(k, axis=0).max()


def test_accuracy_grows_with_the_known_classes(grown, digits):
    _, growth = grown
    assert [step.classes for step in growth.steps] == list(range(3, 11))
    accuracies = [step.accuracy for step in growth.steps]
    assert accuracies == sorted(set(accuracies))
    for step in growth.steps:
        assert step.accuracy <= (digits.y_test < step.classes).mean()
        assert step.examples == (digits.y < step.classes).sum()


def test_grown_model_is_the_batch_fit(grown, digits):
    clf, growth = grown
    assert growth.difference <= score_bound(clf, digits)
    # The definition itself, on the images in the order in which the model holds them.
    order = np.argsort(digits.y, kind="stable")
    first = np.flatnonzero(digits.y < 3)
    order = np.concatenate([first, order[digits.y[order] >= 3]])
    X, T = digits.X[order], coded(digits.y[order])
    K, k = clf.kernel_(X) + clf.noise_ * np.eye(len(X)), clf.kernel_(X, digits.X_test)
    want = k.T @ np.linalg.solve(K, T)
    assert clf.ids_.tolist() == digits.ids[order].tolist()
    assert_solves(clf.decision_function(digits.X_test), want, K, T, left=k)


def test_audit_finds_what_was_planted(grown, digits):
    clf, _ = grown
    result = audit(clf, digits, 30, np.random.default_rng(0))
    assert result.planted == 30
    assert result.is_planted.sum() > 0.9 * result.planted
    assert len(result.is_planted) == len(result.suspects) < len(digits.y) / 4
    truth = dict(zip(digits.ids, digits.y, strict=True))
    true = np.array([truth[one] for one in result.suspects.ids])
    np.testing.assert_array_equal(result.is_planted, result.suspects.labels != true)
    np.testing.assert_array_equal(result.is_right, result.suspects.preferred == true)
    assert result.before < result.after
    assert (result.suspects.labels != result.suspects.preferred).all()


def test_forgetting_is_exact(grown, digits):
    clf, _ = grown
    rest, result = forget(clf, digits)
    mine = np.char.startswith(digits.ids, "ann/")
    assert result.withdrawn == mine.sum() == 25
    assert set(rest.ids_) == set(digits.ids[~mine])
    assert result.difference <= score_bound(clf, digits, ~mine)


def test_unlearnt_digits_are_called_unknown_more_often_than_known_ones(grown, digits):
    clf, _ = grown
    called_unknown = unlearn(clf, digits, 0) > 1
    is_stranger = digits.y_test == 0
    assert called_unknown.shape == digits.y_test.shape
    assert called_unknown[is_stranger].mean() > 0.5 > called_unknown[~is_stranger].mean()


def test_what_if_leaves_the_model_alone(grown, digits):
    clf, _ = grown
    ids, scores = clf.ids_, clf.decision_function(digits.X_test)
    audit(clf, digits, 30, np.random.default_rng(0))
    forget(clf, digits)
    unlearn(clf, digits, 3)
    np.testing.assert_array_equal(clf.ids_, ids)
    np.testing.assert_array_equal(clf.decision_function(digits.X_test), scores)


def test_demo_reports(tmp_path):
    shares = []
    result = demo.run(seed=1, quick=True, progress=lambda share, step: shares.append(share))
    assert shares == sorted(shares)
    assert shares[0] >= 0
    assert shares[-1] < 1
    report = demo.report(result, tmp_path)
    picture, model = report.files
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert model.name == "digits.km"
    (table,) = [part for part in report.parts if isinstance(part, ResultTable)]
    known = [row[0] for row in table.rows]
    assert known == [*map(str, range(3, 11)), "the last image alone"]
    assert all(len(row) == len(table.header) for row in table.rows)
    text = " ".join(part for part in report.parts if isinstance(part, str))
    for measured in (
        f"{result.audit.is_planted.sum()} of the {result.audit.planted} planted",
        f"Ann withdrew {result.forgetting.withdrawn} images",
        f"at most {result.forgetting.difference:.0e}",
        f"called {(result.variances[result.is_stranger] > 1).mean():.0%} of the strangers unknown",
    ):
        assert measured in text


def test_words_in_the_figure_do_not_cover_the_legend(digits):
    figure = experiments.new_figure(11, 7.6)
    *_, part = figure.subfigures(2, 2).flat
    ax = part.subplots()
    values = np.linspace(0.5, 2, 200)[None]
    made = SimpleNamespace(variances=values, is_stranger=values > 1.2)
    demo._draw_variances(ax, made)
    figure.canvas.draw()
    (words,) = ax.texts
    assert not ax.get_legend().get_window_extent().overlaps(words.get_window_extent())


def test_the_model_left_behind_and_the_commands_to_try_on_it(digits, tmp_path, monkeypatch):
    path = tmp_path / "digits.km"
    for _ in range(2):
        demo._write_model(digits, path)
    with knowmore.open(path) as store:
        assert store.ids_.tolist() == digits.ids.tolist()
        assert len(store.status().contributors) == 12
    monkeypatch.setattr(demo, "_figure", lambda result: None)
    monkeypatch.setattr(demo.experiments, "save_figure", lambda figure, path: path)
    monkeypatch.setattr(demo, "_growth_table", lambda result: "")
    monkeypatch.setattr(demo, "_sentences", lambda result: ())
    monkeypatch.setattr("knowmore.store.Store.verify", lambda self, fast: _Fine())
    report = demo.report(demo.Demo(*[None] * 5, digits), tmp_path)
    done = [CliRunner().invoke(app, split(line)[1:]) for line in report.commands]
    assert [one.exit_code for one in done] == [0, 0, 0, 0]
    # Each shows something, and the first measures what was made.
    assert all(one.stdout.strip() for one in done[:2])
    assert "each predicted by the others" in done[0].stdout
    with knowmore.open(path) as store:
        assert len(store) == 275


class _Fine:
    ok = True

    def certificate(self):
        return {}
