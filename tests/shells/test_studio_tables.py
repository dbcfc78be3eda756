"""Questions, table and merging in a real browser: what is seen is what the library says."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tolerance import THREE_DIGITS, as_shown, close

import knowmore
from knowmore import GPClassifier
from knowmore.estimators.shell import unnamed
from knowmore.insight import suggest

pytest.importorskip("playwright.sync_api", reason="needs playwright, for a real browser")
from test_studio_page import Page, browser, started  # noqa: F401

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(2)
X = RNG.normal(size=(300, 3))
Y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "oak", "elm")
COLUMNS = ["height", "girth", "age"]
FIRST = slice(0, 140)
POOL = slice(140, 180)
OTHER = slice(180, 220)


def names(rows):
    return [f"tree {i}" for i in range(300)][rows]


def made(path, rows, labels=Y, contributor="ann"):
    with knowmore.open(path, GPClassifier(RBF(1.0), noise=0.1)) as store:
        store.add(X[rows], labels[rows], names(rows), contributor=contributor, columns=COLUMNS)
    return path


@pytest.fixture
def opened(browser, started, tmp_path):  # noqa: F811
    """A page on a model of trees, with a pool."""
    wrong = Y.copy()
    wrong[3], wrong[180:183] = "elm" if Y[3] == "oak" else "oak", "yew"
    path = made(tmp_path / "trees.km", FIRST, wrong)
    with knowmore.open(path) as store:
        store.add(X[220:225], Y[220:225], names(slice(220, 225)), contributor="bob")
    made(tmp_path / "others.km", OTHER, wrong, "cy")
    with (tmp_path / "pool.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "id", "height", "girth"])
        for one, (height, girth, age) in zip(names(POOL), X[POOL].tolist(), strict=True):
            writer.writerow([age, one, height, girth])
    studio = started("trees.km", "--pool", "pool.csv")
    context = browser.new_context(viewport={"width": 1100, "height": 800})
    page = Page(context.new_page(), path)
    page.page.goto(studio.address)
    page.page.wait_for_selector("body[data-ready]", timeout=60_000)
    yield page
    context.close()
    assert page.problems == []


def share(text):
    return float(text.replace("\u202f", "").rstrip("%"))


def right(store):
    left = store.leave_one_out()
    return 100 * ((left.predicted == left.labels) & ~left.silent).mean()


def test_a_row_of_many_columns_says_how_many_are_not_shown(opened):
    script = (
        "([count]) => import('/example.js').then((example) => "
        "example.exhibit('x', { kind: 'features', values: { a: 1.5 }, count }).textContent)"
    )
    assert opened.page.evaluate(script, [3]) == "and 2 more columnsa1.5"
    assert opened.page.evaluate(script, [2]) == "and 1 more columna1.5"
    assert opened.page.evaluate(script, [1]) == "a1.5"


# -- questions -----------------------------------------------------------------------------------


def test_questions_are_answered_by_one_key(opened):
    left, answers = dict(zip(names(POOL), X[POOL], strict=True)), ["2", "1", "1", "2"]
    labels = opened.page.evaluate("studio.classes.map((one) => one.label)")
    opened.press("q")
    opened.page.wait_for_selector("#question-id")
    for turn, key in enumerate(answers):
        with opened.store() as store:
            rows = np.array([*left.values()])
            best = [*left][suggest(unnamed(store.estimator), rows).indices[0]]
            before = unnamed(store.estimator).predict_variance(rows).sum()
            opened.says("question-id", best)
            if not turn:
                # Words first; who wants the numbers sees them from then on.
                assert "Labelling this one would teach the model most" in opened.text("#why-this")
                assert not opened.page.locator("#drop").is_visible()
                opened.page.click("#question summary")
            shown = float(opened.text("#drop"))
            of = float(re.search(r"falls by \S+ of (\d[\d.]*\d|\d)", opened.text("#question"))[1])
        assert f"{X[int(best.split()[1]), 2]:.5g}" in opened.text("#question table")
        opened.press(key)
        opened.number(3 + turn)
        with opened.store() as store:
            assert store.examples.labels[-1] == labels[int(key) - 1]
            assert store.ids_[-1] == best
            fallen = before - unnamed(store.estimator).predict_variance(rows).sum()
            # It is shown in three digits.
            assert (shown, of) == close((fallen, before), THREE_DIGITS)
            opened.says("questions-count", f"{turn + 1} of 40 answered")
            assert share(opened.text("#questions-right")) == as_shown(right(store), 1)
        del left[best]
    words = opened.page.get_attribute(".curve svg", "aria-label")
    assert re.search(r"after 0 answers, .* after 4 answers", words)
    assert opened.page.locator(".curve polyline").get_attribute("points").count(",") == 5
    # U takes the last answer back, and it is asked again.
    opened.press("u")
    opened.says("question-id", best)
    opened.says("questions-count", "3 of 40 answered")
    # J goes on; N makes a class.
    opened.press("j")
    opened.until("([b]) => document.getElementById('question-id').textContent !== b", best)
    asked = opened.text("#question-id")
    opened.press("n")
    opened.page.wait_for_selector("#ask[open]")
    opened.page.keyboard.type("yew")
    opened.press("Enter")
    opened.says("questions-count", "4 of 40 answered")
    with opened.store() as store:
        (record,) = store.records([asked])
    assert (record.label, record.contributor, record.origin) == ("yew", "studio", "pool.csv")


def test_a_table_is_opened_on_the_page(opened, tmp_path):
    opened.press("q")
    opened.page.wait_for_selector("#question-id")
    (tmp_path / "new.csv").write_text("id,height,girth,age\nfar,9,9,9\nnear,0,0,0\n")
    opened.page.set_input_files("#pool-file", tmp_path / "new.csv")
    opened.says("questions-count", "0 of 2 answered")
    opened.says("live", "2 rows of new.csv to ask about.")
    (tmp_path / "bad.csv").write_text("height,girth\n1,2\n")
    opened.page.set_input_files("#pool-file", tmp_path / "bad.csv")
    opened.says("live", "'bad.csv' has no column 'age'")
    # A browser notes that the studio refused.
    opened.problems.clear()
    first = opened.text("#question-id")
    opened.press("j")
    opened.until("([b]) => document.getElementById('question-id').textContent !== b", first)
    opened.press("j")
    opened.until("() => document.querySelector('#question h2').textContent === '2 rows skipped'")
    opened.press("j")
    opened.page.wait_for_selector("#question-id")


# -- the table -----------------------------------------------------------------------------------


def shown(page):
    """The ids that the table shows."""
    return page.page.locator("#rows tbody th").all_inner_texts()


def asks(page, *ids):
    """Wait until the table begins with these."""
    holds = """(ids) => JSON.stringify([...document.querySelectorAll('#rows tbody th')]
        .slice(0, ids.length).map((one) => one.textContent)) === JSON.stringify(ids)"""
    page.until(holds, *ids)


def test_the_table_is_sorted_searched_and_paged(opened):
    with opened.store() as store:
        ids, examples = store.ids_.tolist(), store.examples
        left = store.leave_one_out()
    opened.press("t")
    asks(opened, *ids[:50])
    assert opened.text("#rows-count") == "1 to 50 of 145"
    opened.press("PageDown", "PageDown")
    asks(opened, *ids[100:])
    assert len(shown(opened)) == 45
    opened.press("Home")
    asks(opened, *ids[:50])
    # By a feature: up, then down.
    order = np.argsort(examples.X[:, 1], kind="stable")
    opened.page.click("[data-sort='1']")
    asks(opened, *[ids[i] for i in order[:50]])
    assert opened.page.get_attribute("th:has([data-sort='1'])", "aria-sort") == "ascending"
    opened.press("Enter")
    asks(opened, *[ids[i] for i in order[::-1][:50]])
    opened.press("Enter")
    asks(opened, *ids[:50])
    # By a part of a name, from the keyboard.
    opened.press("/")
    opened.page.keyboard.type("TREE 13")
    found = [one for one in ids if "tree 13" in one]
    asks(opened, *found)
    opened.says("rows-count", f"1 to {len(found)} of {len(found)} (of 145)")
    opened.page.fill("#search", "")
    opened.press("Escape")
    opened.page.select_option("#of-whom", label="bob")
    asks(opened, *ids[140:])
    opened.page.select_option("#of-whom", label="everyone")
    opened.page.select_option("#of-class", label="elm")
    asks(opened, *[one for one, y in zip(ids, left.labels, strict=True) if y == "elm"][:50])
    opened.page.select_option("#of-class", label="all")
    opened.page.select_option("#of-unseen", "wrong")
    wrong = (left.predicted != left.labels) & ~left.silent
    found = left.ids[wrong].tolist()
    asks(opened, *found)
    assert opened.text("#rows-count").startswith(f"1 to {len(found)} of {len(found)} ")


def test_rows_are_edited_where_they_are_seen(opened):
    labels = opened.page.evaluate("studio.classes.map((one) => one.label)")
    opened.press("t")
    asks(opened, "tree 0")
    opened.press("ArrowDown", "ArrowDown", "ArrowDown")
    assert opened.text("#chosen-row") == "tree 3:"
    assert opened.text("[aria-selected=true] th") == "tree 3"
    opened.press(str(labels.index(Y[3]) + 1))
    opened.number(3)
    with opened.store() as store:
        assert store.examples.labels[store.examples.rows(("tree 3",))[0]] == Y[3]
    opened.press("u")
    opened.number(2)
    opened.page.click("#rows tbody tr:nth-child(6)")
    assert opened.text("#chosen-row") == "tree 5:"
    opened.press("Delete")
    assert "Press Delete again" in opened.text("#live")
    opened.press("Delete")
    opened.until("() => document.getElementById('rows-count').textContent.endsWith('of 144')")
    with opened.store() as store:
        assert "tree 5" not in store.ids_.tolist()
        assert store.log()[-1].verb == "forget"
    assert "tree 5" not in shown(opened)


# -- history -------------------------------------------------------------------------------------


def test_a_merge_is_previewed_done_and_undone(opened, tmp_path):
    with opened.store() as store, knowmore.open(tmp_path / "others.km") as other:
        before, n = right(store), len(store)
        was = {
            one: label
            for left in (store.leave_one_out(), other.leave_one_out())
            for one, label in zip(left.ids.tolist(), left.predicted.tolist(), strict=True)
        }
        then = store.estimator.merge(other.estimator).leave_one_out()
    flips = [
        f"{one} {'there' if one in names(OTHER) else 'here'}: {was[one]} → {label}"
        for one, label in zip(then.ids.tolist(), then.predicted.tolist(), strict=True)
        if was[one] != label
    ]
    opened.press("h")
    opened.page.wait_for_selector("#neighbours option", state="attached")
    opened.page.fill("#other", "others.km")
    opened.press("Enter")
    opened.page.wait_for_selector("#merge-flips")
    assert "40 examples would come, with 1 class that is new: yew." in opened.text("#merge-words")
    assert opened.text("#merge-flips").startswith(f"{len(flips)} answer")
    assert opened.page.locator(".flips li").all_inner_texts() == flips
    assert share(opened.text("#merge-before")) == as_shown(before, 1)
    with opened.store() as store:
        assert len(store) == n
    after = opened.text("#merge-after")
    opened.page.click("#merge")
    opened.number(3)
    with opened.store() as store:
        assert (len(store), store.log()[-1].verb) == (n + 40, "merge")
        assert share(after) == as_shown(right(store), 1)
    opened.press("u")
    # Forty examples are no slip of a key: it is asked about.
    opened.says("ask-title", "Undo merge of 40 examples?")
    opened.page.click("#ask-yes")
    opened.number(2)
    opened.page.fill("#other", "../others.km")
    opened.press("Enter")
    opened.says("merge-words", "There is no other model '../others.km'")
    opened.problems.clear()


def test_a_contributor_is_forgotten_and_the_file_verified(opened):
    opened.press("h")
    opened.page.wait_for_selector("#whose option[value=bob]", state="attached")
    opened.page.select_option("#whose", "bob")
    with opened.store() as store:
        before = store.leave_one_out()
        then = store.estimator.remove(names(slice(220, 225))).leave_one_out()
    was = dict(zip(before.ids.tolist(), before.predicted.tolist(), strict=True))
    pairs = zip(then.ids.tolist(), then.predicted.tolist(), strict=True)
    flips = sum(was[one] != label for one, label in pairs)
    opened.page.click("#forget-whose")
    opened.page.wait_for_selector("#ask[open]")
    assert f"5 examples would go, and {flips} answer" in opened.text("#ask-words")
    opened.page.click("#ask-yes")
    opened.says("certificate", "Verified.")
    with opened.store() as store:
        assert len(store) == 140
    # All that is left is of one: the studio says so, and nothing happens.
    opened.page.select_option("#whose", "ann")
    opened.page.click("#forget-whose")
    opened.says("live", "All examples are of this contributor")
    opened.problems.clear()
