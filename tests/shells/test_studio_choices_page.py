"""Where people stopped, in a real browser: pictures, many classes, slices, phones and links."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from fruit import fruit
from test_studio_page import CHROMIUM, Page, browser, started  # noqa: F401  fixtures

import knowmore
from knowmore import GPClassifier
from knowmore.insight import suspects

assert CHROMIUM.exists()
pytestmark = pytest.mark.slow

NAMES = [f"species {chr(97 + i)}" for i in range(26)] + ["zebra"]


def page_of(browser, studio, path, **options):  # noqa: F811
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}} | options)
    page = Page(context.new_page(), path)
    page.page.goto(studio.address)
    page.page.wait_for_selector("body[data-ready]", timeout=60_000)
    page.context = context
    return page


def view(page, name):
    page.page.evaluate("n => studio.open(studio.views.find((one) => one.name === n))", name)
    page.until("([n]) => !document.getElementById(n).hidden", name)


def no_violations(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-core")
    found = axe.Axe().run(page.page).response["violations"]
    assert [f"{one['id']}: {node['target']}" for one in found for node in one["nodes"]] == []


@pytest.fixture
def pictures(browser, started, tmp_path):  # noqa: F811
    path = fruit(tmp_path)
    with knowmore.open(path) as store:
        store.relabel(["lime/0.png", "plum/1.png"], ["apple", "lime"])
    page = page_of(browser, started("fruit.km"), path)
    yield page
    page.context.close()
    assert page.problems == []


@pytest.fixture
def many(browser, started, tmp_path):  # noqa: F811
    """A model of 27 classes in six features, whose plane shows little of it."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(27, 6)) * 4, 6, axis=0) + rng.normal(size=(162, 6))
    path = tmp_path / "many.km"
    with knowmore.open(path, GPClassifier()) as store:
        store.add(X, np.repeat(NAMES, 6), [f"e{i}" for i in range(162)])
    page = page_of(browser, started("many.km"), path)
    yield page
    page.context.close()
    assert page.problems == []


def test_a_suspect_is_judged_by_its_picture_and_put_aside(pictures):
    view(pictures, "inbox")
    with pictures.store() as store:
        found = suspects(store.estimator)
        first = found.ids[0]
        against = [*found.contradicting[0]]
    pictures.says("doubt", f"Example {first}")
    shown = pictures.page.locator("#doubt .exhibit img")
    assert shown.get_attribute("alt") == f"The picture {first}"
    pictures.until(
        "() => document.querySelector('#doubt .exhibit img')?.complete "
        "&& document.querySelector('#doubt .exhibit img').naturalWidth > 10"
    )
    assert shown.bounding_box()["width"] >= 250
    pictures.page.wait_for_selector("#doubt .against img")
    titles = pictures.page.locator("#doubt .against li").evaluate_all(
        "all => all.map(l => l.title)"
    )
    assert titles == against
    no_violations(pictures)
    number = pictures.page.evaluate("studio.state.number")
    pictures.press("x")
    pictures.says("live", "it is put aside")
    with pictures.store() as store:
        assert [*store.refused()] == [first]
        label = store.refused()[first][0]
    pictures.page.get_by_role("button", name=re.compile(f"not {label}")).click()
    pictures.says("doubt", f"it is not {label}")
    no_violations(pictures)
    pictures.press("u")
    pictures.says("live", "Undone")
    with pictures.store() as store:
        assert store.refused() == {}
    # Again, and then somebody knows its label.
    pictures.page.locator(".doubts button", has_text=first.split("/")[-1]).first.click()
    pictures.press("x")
    pictures.says("live", "it is put aside")
    pictures.page.get_by_role("button", name=re.compile(f"not {label}")).click()
    pictures.says("doubt", f"it is not {label}")
    pictures.press("l")
    pictures.page.fill("#pick-input", "quince")
    pictures.press("Enter")
    pictures.says("live", f"{first} is quince now")
    assert pictures.page.evaluate("studio.state.number") > number
    with pictures.store() as store:
        assert store.records([first])[0].label == "quince"
        assert store.aside() == []


def test_the_table_of_pictures_shows_them_and_no_features(pictures):
    view(pictures, "table")
    pictures.page.wait_for_selector("#rows tbody tr")
    heads = pictures.page.locator("#rows thead th").all_inner_texts()
    assert heads == ["id", "label", "the others say", "tested unseen", "contributor", "picture"]
    pictures.until(
        "() => document.querySelector('#rows tbody img')?.complete "
        "&& document.querySelector('#rows tbody img').naturalWidth > 10"
    )
    no_violations(pictures)


def test_the_desk_puts_aside_and_brings_back(pictures):
    view(pictures, "desk")
    pictures.page.locator('.tile[title^="plum/0.png: "]').click()
    pictures.press("x")
    pictures.says("live", "Put aside until somebody knows better: 1 picture.")
    aside = pictures.page.locator('.queue .tile[title^="plum/0.png: "]')
    assert "it is not plum" in aside.get_attribute("title")
    aside.click()
    no_violations(pictures)
    pictures.press("2")
    pictures.until("() => !document.querySelector('.queue .tile')")
    with pictures.store() as store:
        assert store.records(["plum/0.png"])[0].label == "lime"


def test_any_of_many_classes_is_found_by_a_part_of_its_name(many):
    # The plane of six features would mislead: the page opens where something is to be done.
    many.until("() => studio.view.name === 'inbox'")
    view(many, "table")
    many.page.locator("#rows tbody tr").nth(3).click()
    before = many.page.evaluate("studio.state.number")
    many.press("l")
    listed = many.page.locator("#pick-list li")
    assert listed.count() == 26
    no_violations(many)
    many.page.keyboard.type("zeb")
    assert listed.all_inner_texts() == ["zebra\n6 examples", "+ New class\nzeb"]
    many.press("ArrowDown", "ArrowUp", "Enter")
    many.number(before + 1)
    with many.store() as store:
        assert store.records(["e3"])[0].label == "zebra"
    # A button does the same, and Escape nothing.
    many.page.locator(".all-classes:visible").click()
    many.page.keyboard.type("yak")
    many.press("Escape")
    assert many.page.evaluate("studio.state.number") == before + 1
    many.page.locator(".all-classes:visible").click()
    many.page.keyboard.type("yak")
    many.page.locator("#pick-list .fresh").click()
    many.number(before + 2)
    with many.store() as store:
        assert store.records(["e3"])[0].label == "yak"
    for name in ("plane", "inbox"):
        view(many, name)
        many.press("l")
        opened = many.page.locator("#pick").is_visible()
        assert opened == (name == "plane" or many.page.locator("#doubt .answers").count() > 0)
        if opened:
            many.press("Escape")


def test_a_plane_that_misleads_is_seen_only_if_asked_for(many):
    view(many, "plane")
    many.page.wait_for_selector(".misled:visible")
    found = many.page.evaluate("studio.state.plane.slice")
    assert found["misleads"]
    wrong = f"{100 * (1 - found['agreement']):.1f}"
    assert f"For {wrong}" in many.text(".misled")
    assert not many.page.locator(".frame").is_visible()
    no_violations(many)
    # The history would draw the same plane: it says the same.
    warning = many.text("#plane .misled")
    view(many, "history")
    many.page.wait_for_selector("#history .misled:visible")
    assert many.text("#history .misled") == warning
    assert not many.page.locator("#history canvas.past").is_visible()
    no_violations(many)
    many.page.click("#history .anyway")
    many.page.wait_for_selector("#history canvas.past:visible")
    view(many, "plane")
    # Settings can be looked for without an offer.
    many.page.wait_for_selector("#better:visible")
    many.page.click("#plane .anyway")
    assert many.page.locator(".frame").is_visible()
    assert f"{100 * found['share']:.1f}" in many.text("#slice")
    colours = many.page.locator(".classes .swatch").evaluate_all(
        "all => all.map((one) => one.getAttribute('fill'))"
    )
    assert len(colours) == 27
    assert len(set(colours[:20])) == 20


@pytest.mark.parametrize("width", [360, 430])
def test_a_phone_has_one_line_above_and_the_views_below(many, width):
    many.page.set_viewport_size({"width": width, "height": 780})
    for name in ("plane", "inbox", "table", "history", "questions"):
        view(many, name)
        many.page.wait_for_timeout(200)
        assert many.page.evaluate("document.documentElement.scrollWidth") == width
        tops = many.page.locator("header > :visible").evaluate_all(
            "all => all.filter((one) => one.id !== 'tabs')"
            ".map((one) => { const b = one.getBoundingClientRect(); return b.top + b.height / 2; })"
        )
        assert max(tops) - min(tops) < 2
        tabs = many.page.locator("#tabs button:visible")
        boxes = [tabs.nth(i).bounding_box() for i in range(tabs.count())]
        assert all(box["y"] > 780 * 0.9 and box["height"] >= 44 for box in boxes)
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
        no_violations(many)


def test_the_page_is_there_before_the_model_and_says_what_is_done(
    browser,  # noqa: F811
    started,  # noqa: F811
    tmp_path,
    many,
):
    context = many.context
    page = context.new_page()
    # As if the file took long to open.
    waits = {"left": 4}

    def held(route):
        waits["left"] -= 1
        if waits["left"] < 0:
            route.continue_()
            return
        said = {"open": False, "doing": "Reading 162 examples", "share": None}
        route.fulfill(status=200, content_type="application/json", body=json.dumps(said))

    page.route("**/api/progress", held)
    page.goto(many.page.url.partition("#")[0])
    page.wait_for_selector("#loading .spinner")
    page.wait_for_function(
        "() => document.getElementById('doing')?.textContent === 'Reading 162 examples …'"
    )
    page.wait_for_selector("body[data-ready]", timeout=60_000)
    assert page.locator("#loading").count() == 0
    page.close()


def test_the_printed_address_opens_again_in_the_same_browser(pictures):
    """Also by a link of another site, which the cookie does not come along with."""
    address = pictures.page.evaluate("location.origin") + "/?token=used"
    page = pictures.context.new_page()
    page.goto(address)
    page.wait_for_selector("body[data-ready]", timeout=60_000)
    elsewhere = f'<a id="there" href="{address}">there</a>'
    page.route(
        "http://elsewhere.example/",
        lambda route: route.fulfill(status=200, content_type="text/html", body=elsewhere),
    )
    page.goto("http://elsewhere.example/")
    page.click("#there")
    page.wait_for_selector("body[data-ready]", timeout=60_000)
    page.close()
