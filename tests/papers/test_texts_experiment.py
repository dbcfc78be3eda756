"""The experiment on texts at a reduced size: what it computes, writes and concludes."""

from __future__ import annotations

import numpy as np
import pytest
from quick_runs import is_picture, read, result_of, verdicts_of

from papers.data import prose
from papers.texts import texts


@pytest.fixture(scope="module")
def result():
    return result_of(texts)


@pytest.mark.slow
def test_texts_are_reported(result, tmp_path):
    if not result.rows:
        pytest.skip(result.absent[0].why)
    report = texts.report(result, tmp_path)
    picture, numbers, costs = report.files
    assert is_picture(picture)
    assert len(read(numbers)) == sum(1 + len(one.peers) for one in result.rows)
    assert len(verdicts_of(report)) == len(result.rows)
    (cost,) = read(costs)
    assert float(cost["megabytes"]) > 0


@pytest.mark.slow
def test_ours_learns_class_after_class(result):
    if not result.rows:
        pytest.skip(result.absent[0].why)
    found = {one.question: one.ours.mean for one in result.rows}
    assert found["class after class"] > 1 / 25
    assert found["foreign texts"] > 0.9


def test_a_split_has_texts_of_each_class_once():
    labels = np.repeat(["a", "b"], [9, 3])
    found = prose.Prose("made up", [f"text {i}" for i in range(12)], labels)
    train, test = found.split(np.random.default_rng(0), 4, 2)
    assert sorted(labels[train].tolist()) == ["a"] * 4 + ["b"] * 2
    assert sorted(labels[test].tolist()) == ["a"] * 2 + ["b"]
    assert not {*train.tolist()} & {*test.tolist()}
    assert found.of(train[:1]) == [f"text {train[0]}"]


def test_repeated_texts_count_once():
    found = prose._different("made up", [("one", "a"), ("two", "a"), ("one", "b")])
    assert sorted(found.texts) == ["one", "two"]
    assert found.labels.tolist() == ["a", "a"]
