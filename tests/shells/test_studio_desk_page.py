"""The desk in a real browser: what it shows of pictures is what the library says of the file."""

from __future__ import annotations

import re

import numpy as np
import pytest
from fruit import COLOURS, SKY, fruit, picture
from test_studio_choices_page import no_violations
from test_studio_page import Page, browser, started  # noqa: F401  fixtures

import knowmore
from knowmore.insight import explain, grounds
from knowmore.workbench import Predictor, describer_of

pytestmark = pytest.mark.slow


@pytest.fixture
def desk(browser, started, tmp_path):  # noqa: F811
    """A page on the desk of a model of pictures."""
    path = fruit(tmp_path)
    studio = started("fruit.km")
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = Page(context.new_page(), path)
    page.page.goto(studio.address)
    page.page.wait_for_selector("body[data-ready]", timeout=60_000)
    page.page.wait_for_selector(".cards .tile")
    yield page
    context.close()
    assert page.problems == []


def brings(desk, **pictures):
    """Choose files; wait until all are there."""
    before = desk.page.locator(".queue .tile").count()
    files = [
        {"name": f"{name}.png", "mimeType": "image/png", "buffer": data}
        for name, data in pictures.items()
    ]
    desk.page.set_input_files(".drop input", files)
    shown = "([n]) => document.querySelectorAll('.queue .tile').length === n"
    desk.until(shown, before + len(pictures))
    desk.says("live", "brought")


def tile(desk, name):
    return desk.page.locator(f'.tile[title^="{name}: "]')


def percent(share):
    return f"{100 * share:.{0 if share == 1 else 1}f}\u202f%"


def agrees(desk):
    """The cards are the classes of the file, with their counts and accuracies."""
    with desk.store() as store:
        left, labels = store.leave_one_out(), store.examples.labels
        right = (left.predicted == left.labels) & ~left.silent
        names = np.unique(labels).tolist()
        assert desk.page.locator(".cards section").count() == len(names)
        for name in names:
            card, mine = f'[data-class="{name}"]', labels == name
            assert desk.text(f"{card} .count").split()[0] == str(mine.sum())
            assert desk.text(f"{card} .share") == percent(right[mine].mean())
            shown = desk.page.locator(f"{card} .tile").evaluate_all("all => all.map(t => t.title)")
            held = {one for one, own in zip(store.ids_.tolist(), mine, strict=True) if own}
            assert {one.partition(": ")[0] for one in shown} == held
        wrong = desk.page.locator(".cards .tile.wrong").count()
        assert wrong == ((left.predicted != left.labels) & ~left.silent).sum()


def loaded(desk):
    """Wait until every picture that is seen is there; how large each is."""
    done = "() => [...document.images].every((one) => one.complete)"
    desk.until(done)
    return desk.page.locator(".cards .tile img").evaluate_all("all => all.map(i => i.naturalWidth)")


def test_it_opens_on_the_cards_of_a_model_of_pictures(desk):
    assert desk.page.url.endswith("#desk")
    agrees(desk)
    assert set(loaded(desk)) == {64}
    (desk.path.parent / "fruit/lime/2.png").unlink()
    desk.page.reload()
    desk.page.wait_for_selector(".cards .tile")
    widths = dict(zip(range(18), loaded(desk), strict=True))
    assert [i for i, width in widths.items() if width == 1] == [8]
    assert tile(desk, "lime/2.png").locator("span").inner_text() == "lime/2.png"


def of_four(estimator, x):
    """As many grounds as the page shows."""
    return grounds(estimator, x, n=4)


def test_new_pictures_wait_with_what_the_model_says(desk):
    new = {"red": picture(COLOURS["apple"], 503), "blue": picture(SKY, 502)}
    brings(desk, **new)
    with knowmore.open(desk.path) as store:
        rows = np.stack(describer_of(store).vectors([*new.values()]))
        red, blue = Predictor(store, 0.05, keep=False)(rows)
        reason, why = (ask(store.estimator, rows[1:]) for ask in (explain, of_four))
    assert (red.unknown, blue.unknown) == (False, True)
    for name, one in (("red", red), ("blue", blue)):
        said = tile(desk, f"{name}.png").locator("small").inner_text()
        words = f"{one.label}{'?' * one.unknown}\n{percent(one.probability)}, s.d. {one.std:.2f}"
        assert said == words
    # The unknown one is chosen, and beside it is why. What is unknown has no name to accept first.
    assert desk.page.locator(".about .primary").all_inner_texts() == ["L\nChoose a class …"]
    assert desk.text(".about strong") == "I don\u2019t know"
    assert desk.text("#more").startswith(f"at best {blue.label}, {percent(blue.probability)}")
    desk.page.wait_for_selector("#score")
    digits = len(desk.text("#score").partition(".")[2])
    assert digits in (2, 3, 4)
    assert desk.text("#score") == f"{reason.score:.{digits}f}"
    against = np.argsort(-reason.score_without, kind="stable")[:4]
    shown = desk.page.locator(".near").nth(1).locator("li")
    assert shown.evaluate_all("all => all.map((one) => one.title)") == reason.ids[against].tolist()
    without = [f"{one:.{digits}f}" for one in reason.score_without[against]]
    assert shown.locator("b").all_inner_texts() == without
    # And what it rests on, one after the other.
    shown, count = desk.page.locator(".near").nth(2).locator("b"), sum(map(len, why.ids))
    assert shown.all_inner_texts() == [f"{one:.{digits}f}" for one in why.score_left]
    then = f", and {why.instead} the answer" if why.instead != why.label else ""
    these = "this" if count == 1 else f"these {count}"
    title = f"Rests on: without {these} it would be {why.score_left[-1]:.{digits}f}{then}"
    assert desk.page.locator("#why h3").last.text_content() == title
    with desk.store() as store:
        assert len(store) == 18
    # One is accepted, the other becomes a class; undone, both wait again.
    tile(desk, "red.png").click()
    desk.page.click(".about .primary")
    desk.number(2)
    desk.page.click(".queue .primary")
    desk.page.fill("#ask-input", "sky")
    desk.press("Enter")
    desk.number(3)
    agrees(desk)
    with desk.store() as store:
        last = dict(zip(store.ids_.tolist(), store.examples.labels.tolist(), strict=True))
        assert (last["red.png"], last["blue.png"]) == ("apple", "sky")
    desk.press("u")
    desk.number(2)
    assert tile(desk, "blue.png").count() == 1
    desk.press("u")
    desk.number(1)
    assert desk.page.locator(".queue .tile").count() == 2


def test_pictures_are_dragged_and_the_flips_are_shown_before(desk):
    target = desk.page.locator('[data-class="lime"]')
    brings(desk, blue=picture(SKY, 502))
    tile(desk, "blue.png").drag_to(target)
    desk.number(2)
    tile(desk, "apple/1.png").drag_to(target)
    desk.number(3)
    agrees(desk)
    with desk.store() as store:
        labels = dict(zip(store.ids_.tolist(), store.examples.labels.tolist(), strict=True))
        assert (labels["blue.png"], labels["apple/1.png"]) == ("lime", "lime")
    # What if four were: the answers that would change are marked, and then they change.
    for i in (0, 2, 3, 4):
        tile(desk, f"apple/{i}.png").focus()
        desk.press(" ")
    assert desk.text(".about strong") == "4 pictures"
    desk.page.locator(".about .label", has_text="lime").hover()
    desk.says("would", "would change")
    marked = desk.page.locator(".tile[data-to]")
    would = dict(
        marked.evaluate_all("all => all.map((one) => [one.title.split(': ')[0], one.dataset.to])")
    )
    count = re.match(r"Then (\d+) answers? would", desk.text("#would"))[1]
    right = re.search(r"and (.+) would be right", desk.text("#would"))[1]
    with desk.store() as store:
        before = store.leave_one_out()
        assert len(store.log()) == 3
    desk.page.locator(".about .label", has_text="lime").click()
    desk.number(4)
    with desk.store() as store:
        after = store.leave_one_out()
        flips = before.predicted != after.predicted
        assert would == dict(
            zip(after.ids[flips].tolist(), after.predicted[flips].tolist(), strict=True)
        )
        assert int(count) == flips.sum() > 0
        assert right == percent(((after.predicted == after.labels) & ~after.silent).mean())
    agrees(desk)


def test_the_keyboard_alone_suffices(desk):
    brings(desk, one=picture(SKY, 1), two=picture(SKY, 2), red=picture(COLOURS["apple"], 3))
    # All that are unknown become a class with one key; then one is accepted, and moved.
    desk.press("n")
    desk.page.wait_for_selector("#ask[open]")
    assert desk.text("#ask-title") == "A new class of 2 pictures"
    desk.page.keyboard.type("sky")
    desk.press("Enter")
    desk.number(2)
    agrees(desk)
    assert desk.text(".about h2") == "red.png"
    desk.press("a")
    desk.number(3)
    desk.press("Home")
    assert desk.page.evaluate("document.activeElement.title").startswith("apple/0.png")
    desk.press("ArrowRight", "3")
    desk.number(4)
    with desk.store() as store:
        row = store.examples.rows(("apple/1.png",))[0]
        assert store.examples.labels[row] == "plum"
    agrees(desk)
    assert desk.page.evaluate("document.activeElement.title").startswith("apple/1.png: plum")
    desk.press("Delete")
    assert "Press Delete again" in desk.text("#live")
    desk.press("Delete")
    desk.number(5)
    with desk.store() as store:
        assert "apple/1.png" not in store.ids_
        assert store.verify().ok
    agrees(desk)
    # Up and down lead to another row, Escape to nothing; a picture that waits is dismissed.
    desk.press("Home", "ArrowDown")
    assert not desk.page.evaluate("document.activeElement.title").startswith("apple/0.png")
    desk.press("Escape")
    assert not desk.page.is_visible(".about")
    brings(desk, red=picture(COLOURS["apple"], 9))
    desk.press("Delete")
    desk.says("live", "Dismissed: 1 picture.")
    assert desk.page.locator(".queue .tile").count() == 0
    desk.press("i")
    desk.page.wait_for_selector("#inbox:not([hidden])")
    desk.press("b")
    desk.page.wait_for_selector("#desk:not([hidden])")
    desk.press("?")
    assert "all that the model does not know" in desk.text("#keys")


def test_what_is_unticked_is_not_of_the_new_class(desk):
    brings(desk, one=picture(SKY, 1), two=picture(SKY, 2))
    desk.page.click(".queue .primary")
    desk.page.wait_for_selector("#ask[open] .ticks img")
    assert desk.page.locator(".ticks img").count() == 2
    no_violations(desk)
    desk.page.get_by_role("checkbox", name="two.png").uncheck()
    desk.page.fill("#ask-input", "sky")
    desk.press("Enter")
    desk.number(2)
    assert desk.page.locator(".ticks").count() == 0
    with desk.store() as store:
        labels = dict(zip(store.ids_.tolist(), store.examples.labels.tolist(), strict=True))
    assert labels["one.png"] == "sky"
    assert "two.png" not in labels


def test_pictures_are_dropped_and_pasted_and_what_is_none_is_said(desk):
    send = """([name, bytes, kind]) => {
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array(bytes)], name));
      const made = kind === 'paste'
        ? new ClipboardEvent(kind, { clipboardData: data, bubbles: true })
        : new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
      document.querySelector('.cards').dispatchEvent(made);
    }"""
    desk.page.evaluate(send, ["red.png", [*picture(COLOURS["apple"], 3)], "drop"])
    desk.page.wait_for_selector(".queue .tile")
    desk.page.evaluate(send, ["blue.png", [*picture(SKY, 3)], "paste"])
    desk.page.wait_for_selector(".queue .tile.unknown")
    # A browser notes every answer that is no success.
    desk.page.evaluate(send, ["words.png", [*b"no picture"], "drop"])
    desk.says("live", "'words.png' cannot be read: it is not a picture in")
    assert [one for one in desk.problems if "422" not in one] == []
    desk.problems.clear()


def test_other_models_have_no_desk(browser, started):  # noqa: F811
    page = browser.new_context().new_page()
    page.goto(started().address)
    page.wait_for_selector("body[data-ready]", timeout=60_000)
    assert not page.is_visible("#tab-desk")
    page.keyboard.press("b")
    assert page.url.endswith("#plane")
    page.context.close()
