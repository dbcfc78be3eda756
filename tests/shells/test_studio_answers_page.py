"""Answers in the browser: none is lost, none is undone unasked, and what is said is so."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("playwright.sync_api")

from test_studio_choices_page import (
    NAMES,
    no_violations,
    page_of,
    view,
)
from test_studio_page import browser, started  # noqa: F401

import knowmore
from knowmore import GPClassifier
from knowmore.insight import suspects

pytestmark = pytest.mark.slow
FRUIT = ("apple", "pear", "plum")


@pytest.fixture
def planted(browser, started, tmp_path):  # noqa: F811
    """A page on 36 examples, nine of them with a wrong label."""
    rng = np.random.default_rng(1)
    centres = np.array([[-0.5, -0.3], [0.5, -0.35], [0.0, 0.5]])
    X = np.repeat(centres, 12, axis=0) + rng.normal(0, 0.3, (36, 2))
    labels = np.repeat(FRUIT, 12)
    for i in rng.choice(36, 9, replace=False):
        labels[i] = [one for one in FRUIT if one != labels[i]][rng.integers(2)]
    path = tmp_path / "planted.km"
    with knowmore.open(path, GPClassifier()) as store:
        store.add(X, labels, [f"e{i}" for i in range(36)])
    page = page_of(browser, started("planted.km"), path)
    yield page
    page.context.close()
    assert page.problems == []


def test_whoever_was_listed_is_asked_about_until_there_is_an_answer(planted):
    with planted.store() as store:
        found = suspects(store.estimator)
    wanted = dict(zip(found.ids.tolist(), found.preferred.tolist(), strict=True))
    view(planted, "inbox")
    planted.until("() => document.querySelector('#doubt h2')")
    late, asked = 0, set()
    while planted.text("#inbox-count") != "0 doubts left":
        asked.add(planted.text("#doubt h2").removeprefix("Example "))
        late += "said at first" in planted.text("#doubt")
        if late == 1:
            assert "doubted at first" in planted.text(".doubts")
            no_violations(planted)
        number = planted.page.evaluate("studio.state.number")
        planted.press("a")
        planted.number(number + 1)
    assert late
    assert {*wanted} <= asked
    with planted.store() as store:
        left = store.leave_one_out()
        otherwise = int(((left.predicted != left.labels) & ~left.silent).sum())
    said = planted.text("#doubt")
    assert ("would still be predicted otherwise" in said) == (otherwise > 0)
    # The last answer is taken back, and it is asked about again.
    planted.press("u")
    planted.says("inbox-count", "1 doubt left")


def test_what_was_there_before_the_page_is_not_undone_unasked(planted):
    # One of this page is undone at once, and then the next is the one of before.
    view(planted, "table")
    planted.page.click("#rows tbody tr:nth-child(2)")
    with planted.store() as store:
        label = store.records([planted.text("#chosen-row").rstrip(":")])[0].label
    planted.press("2" if label != FRUIT[1] else "1")
    planted.number(2)
    planted.press("u")
    planted.number(1)
    planted.press("u")
    planted.says("ask-title", "Undo add of 36 examples?")
    assert "before this page was opened" in planted.text("#ask-words")
    no_violations(planted)
    # The answer in focus is no.
    planted.press("Enter")
    planted.until("() => !document.querySelector('dialog[open]')")
    with planted.store() as store:
        assert len(store) == 36
    planted.press("u")
    planted.says("ask-title", "Undo add of 36 examples?")
    planted.page.click("#ask-yes")
    planted.number(0)
    planted.press("r")
    planted.number(1)
    with planted.store() as store:
        assert len(store) == 36


@pytest.fixture
def asked(browser, started, tmp_path):  # noqa: F811
    """A page on questions to a model of 27 classes."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(27, 6)) * 4
    path = tmp_path / "many.km"
    with knowmore.open(path, GPClassifier()) as store:
        store.add(np.repeat(centres, 6, axis=0) + rng.normal(size=(162, 6)), np.repeat(NAMES, 6))
    rows = centres[[20, 23]] + rng.normal(size=(2, 6))
    lines = [",".join([f"x{i}" for i in range(6)]), *(",".join(map(str, one)) for one in rows)]
    (tmp_path / "pool.csv").write_text("\n".join(lines) + "\n")
    page = page_of(browser, started("many.km", "--pool", "pool.csv"), path)
    yield page
    page.context.close()
    assert page.problems == []


def test_of_many_classes_the_likeliest_have_the_buttons(asked):
    view(asked, "questions")
    asked.page.wait_for_selector("#question .chances")
    likely = asked.page.locator("#question .chances th").all_inner_texts()
    buttons = "#question .answers .label .name"
    assert asked.page.locator(buttons).all_inner_texts() == likely
    assert len(likely) == 9
    asked.press("l")
    listed = asked.page.locator("#pick-list .name").all_inner_texts()
    assert listed[:9] == likely
    asked.press("Escape")
    no_violations(asked)
    # After "not this one" the next is proposed, and A accepts it.
    asked.press("x")
    asked.until(
        "([gone]) => !document.querySelector('#question .answers .name')"
        ".textContent.includes(gone)",
        likely[0],
    )
    left = asked.page.locator("#question .chances th").all_inner_texts()
    assert left[:8] == likely[1:]
    one = asked.text("#question-id")
    asked.press("a")
    asked.number(2)
    with asked.store() as store:
        (record,) = [each for each in store.records() if str(each.id) == one]
        assert record.label == left[0]
    likely = asked.page.locator(buttons).all_inner_texts()
    asked.press("2")
    asked.number(3)
    with asked.store() as store:
        assert store.log()[-1].label == likely[1]
