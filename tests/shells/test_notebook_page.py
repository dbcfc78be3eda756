"""The widgets in a real browser, with a stand-in for the model that a notebook would give them.

Behind it is the real Python side: what is clicked is in the estimator.
"""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tolerance import PIXEL

from knowmore import GPClassifier
from knowmore.insight import suspects

pytest.importorskip("anywidget")
api = pytest.importorskip("playwright.sync_api", reason="needs playwright, for a real browser")
CHROMIUM = Path("/usr/bin/chromium")
if not CHROMIUM.exists():
    pytest.skip("needs Debian's chromium, for a real browser", allow_module_level=True)

from knowmore.notebook import Inbox, Plane  # noqa: E402

# What anywidget gives a module: messages there and back, and the traits.
MOUNT = """
async ([esm, traits]) => {
  const url = URL.createObjectURL(new Blob([esm], { type: 'text/javascript' }));
  const { default: widget } = await import(url);
  const told = new Set();
  window.told = (content, buffers) => {
    const bytes = (one) => Uint8Array.from(atob(one), (c) => c.charCodeAt(0)).buffer;
    const views = buffers.map((one) => new DataView(bytes(one)));
    for (const one of told) one(content, views);
  };
  const model = {
    get: (name) => traits[name],
    on: (name, run) => told.add(run),
    off: (name, run) => told.delete(run),
    send: async (content) => {
      for (const [said, buffers] of await window.asked(content)) window.told(said, buffers);
    },
  };
  const el = document.createElement('div');
  document.body.append(el);
  window.end = await widget.render({ model, el });
  window.el = el;
}
"""


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def mounted(browser, monkeypatch):
    """A page with a widget, which is asked for by its messages alone."""
    context = browser.new_context(viewport={"width": 1100, "height": 800})
    page, problems = context.new_page(), []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: said.type == "error" and problems.append(said.text))

    def mount(widget):
        said = []

        def send(content, buffers=()):
            said.append([content, [base64.b64encode(one).decode() for one in buffers]])

        def asked(content):
            widget._handle_custom_msg(content, [])
            answers, said[:] = said[:], []
            return answers

        monkeypatch.setattr(widget, "send", send)
        page.expose_function("asked", asked)
        page.goto("about:blank")
        page.evaluate(MOUNT, [widget._esm, {"_shown": widget._shown}])
        page.wait_for_function("() => window.el?.dataset.ready")
        return page

    yield mount
    context.close()
    assert problems == []


def at(page, x, y):
    """Screen position of a place of the plane from -1 to 1."""
    box = page.locator("canvas.top").bounding_box()
    return box["x"] + (x + 1) / 2 * box["width"], box["y"] + (1 - y) / 2 * box["height"]


def until(page, number):
    page.wait_for_function(f"() => el.studio.state.number === {number}")


@pytest.mark.slow
def test_what_is_clicked_is_in_the_estimator(mounted):
    clf = GPClassifier(RBF(0.3), noise=0.1)
    page = mounted(Plane(clf))
    page.mouse.click(*at(page, -0.5, 0.0))
    until(page, 1)
    page.keyboard.press("2")
    page.mouse.click(*at(page, 0.5, 0.0))
    until(page, 2)
    page.mouse.click(*at(page, 0.6, 0.4))
    until(page, 3)
    page.mouse.move(*at(page, -0.5, 0.0))
    page.mouse.down()
    page.mouse.move(*at(page, -0.3, 0.3), steps=5)
    page.mouse.up()
    until(page, 4)
    X = clf._living.examples.X[np.argsort(clf.ids_)]
    assert np.allclose(X, [[-0.3, 0.3], [0.5, 0.0], [0.6, 0.4]], atol=PIXEL)
    fresh = GPClassifier(RBF(0.3), noise=0.1).fit(X, ["A", "B", "B"])
    Q = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    gap = 4 * np.finfo(float).eps * np.linalg.cond(RBF(0.3)(X) + 0.1 * np.eye(3))
    assert abs(clf.decision_function(Q) - fresh.decision_function(Q)).max() <= gap
    assert page.inner_text("#count") == "3"
    # Undo is a key, the menu forgets, and nothing of it leaves the widget.
    page.keyboard.press("u")
    until(page, 3)
    X = clf._living.examples.X[np.argsort(clf.ids_)]
    assert np.allclose(X[0], [-0.5, 0.0], atol=PIXEL)
    page.mouse.click(*at(page, 0.6, 0.4), button="right")
    page.get_by_role("menuitem", name="Forget for ever").click()
    page.wait_for_function("() => el.studio.state.n === 2")
    assert sorted(clf.ids_) == [0, 1]
    assert page.locator(".tip").count() == 1
    assert page.evaluate("document.body.children.length") == 1
    assert page.evaluate("getComputedStyle(document.body).display") == "block"


def test_the_inbox_answers_and_the_estimator_is_relabelled(mounted):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 2))
    y = np.where(X[:, 0] > 0, "east", "west")
    X[:2], y[:2] = [[0.8, 0.0], [-0.8, 0.0]], ["west", "east"]
    clf = GPClassifier(RBF(0.4), noise=0.1).fit(X, y)
    found = suspects(clf)
    page = mounted(Inbox(clf))
    page.wait_for_selector("#doubt h2")
    assert page.inner_text("#doubt h2") == f"Example {found.ids[0]}"
    page.locator("#doubt").focus()
    page.keyboard.press("a")
    until(page, 1)
    assert clf._living.examples.labels[found.ids[0]] == found.preferred[0]
    again = suspects(clf).ids[0]
    page.wait_for_function(
        f"() => el.studio.root.querySelector('#doubt h2').textContent === 'Example {again}'"
    )


@pytest.mark.slow
def test_a_model_without_a_plane_says_so(mounted):
    clf = GPClassifier(RBF(0.4)).fit([[0.0], [1.0]], ["a", "b"])
    page = mounted(Plane(clf))
    assert "at least two features" in page.inner_text("#live")
