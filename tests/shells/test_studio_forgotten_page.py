"""After a forget a browser keeps nothing of it: on the page, in its stores, or in its files."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
from fruit import SKY, fruit, picture
from sklearn.gaussian_process.kernels import RBF

import knowmore
from knowmore import GPClassifier

api = pytest.importorskip("playwright.sync_api", reason="needs playwright, for a real browser")
from test_studio_page import ARGUMENTS, CHROMIUM, Page, Started  # noqa: E402

pytestmark = pytest.mark.slow

NAME = "zqsecret"
# All that a page can reach of what a browser keeps, and all that is on the page.
KEPT = """async () => JSON.stringify({
  local: { ...localStorage },
  session: { ...sessionStorage },
  databases: await indexedDB.databases(),
  caches: await caches.keys(),
  workers: (await navigator.serviceWorker.getRegistrations()).length,
  cookie: document.cookie,
  name: window.name,
  history: [history.state, history.length],
  address: location.href,
  title: document.title,
  asked: performance.getEntries().map((one) => one.name),
  page: document.documentElement.outerHTML,
  fields: [...document.querySelectorAll('input, select')].map((one) => one.value),
})"""


class Visit:
    """A browser with files of its own, on the page of a studio."""

    def __init__(self, playwright, folder, studio, path):
        self.profile, self.studio = folder / "profile", studio
        self.context = playwright.chromium.launch_persistent_context(
            str(self.profile), executable_path=str(CHROMIUM), args=ARGUMENTS
        )
        self.page = Page(self.context.pages[0], path)
        self.page.page.goto(studio.address)
        self.page.page.wait_for_selector("body[data-ready]", timeout=60_000)

    def views(self):
        """Open every view, and end where it began."""
        page = self.page.page
        names = page.evaluate(
            "studio.views.filter((one) => !one.tab.disabled).map((one) => one.name)"
        )
        for name in [*names, names[0]]:
            page.evaluate(
                "name => studio.open(studio.views.find((one) => one.name === name))", name
            )
        return names

    def kept(self):
        """Text of the page and of the browser's stores."""
        return self.page.page.evaluate(KEPT)

    def files(self):
        """Files of the browser; some contain the name."""
        found = []
        for one in self.profile.rglob("*"):
            with suppress(OSError):
                if one.is_file():
                    data = one.read_bytes().lower()
                    wide = "".join(f"{letter}\0" for letter in NAME).encode()
                    found += [one.name] if NAME.encode() in data or wide in data else []
        return found


@pytest.fixture
def visit(tmp_path):
    running = []
    with api.sync_playwright() as playwright:

        def begin(path, *arguments):
            studio = Started(tmp_path, path.name, *arguments)
            running.append(studio)
            running.append(one := Visit(playwright, tmp_path, studio, path))
            return one

        yield begin
        for one in running:
            if isinstance(one, Started):
                one.end(signal.SIGKILL)
            else:
                with suppress(api.Error):
                    one.context.close()


def forget(path, *ids):
    command = [sys.executable, "-m", "knowmore", "forget", str(path), *ids]
    subprocess.run(command, check=True, capture_output=True)


def taught(folder):
    """A file with some examples, a class and a contributor that are to be forgotten."""
    path, rng = folder / "model.km", np.random.default_rng(0)
    X = rng.uniform(-1, 1, (30, 3))
    with knowmore.open(path, GPClassifier(RBF(0.7), noise=0.05)) as store:
        store.add(X, np.where(X[:, 0] > 0, "a", "b"), ids=[f"kept {i}" for i in range(30)])
        store.add(
            X[:3] + 0.1, [f"{NAME} label"] * 3, [f"{NAME} {i}" for i in range(3)], contributor=NAME
        )
        # A doubt, for the inbox.
        store.relabel(f"{NAME} 0", "b")
    return path


@pytest.mark.parametrize("where", ["plane", "table", "history", "another process"])
def test_a_page_keeps_nothing_of_the_forgotten(tmp_path, visit, where):
    path = taught(tmp_path)
    (tmp_path / "pool.csv").write_text("id,x0,x1,x2\nopen 1,0.1,0.2,0.3\nopen 2,0.4,0.1,0.2\n")
    begun = visit(path, "--pool", "pool.csv")
    page, shown = begun.page, begun.page.page
    begun.views()
    # It is on the page, and was asked for.
    assert begun.kept().count(NAME) > 10
    with page.store() as store:
        number = store.log()[-1].number
    if where == "another process":
        forget(path, *(f"{NAME} {i}" for i in range(3)))
        page.number(number + 1)
    elif where == "history":
        page.press("h")
        shown.wait_for_selector("#whose")
        shown.select_option("#whose", NAME)
        shown.click("#forget-whose")
        shown.wait_for_selector("#ask[open]")
        shown.click("#ask-yes")
        page.number(number + 1)
        page.says("certificate", "Verified.")
    elif where == "table":
        page.press("t")
        shown.select_option("#of-whom", f".{NAME}")
        shown.select_option("#of-class", label=f"{NAME} label")
        page.says("rows-count", "of 2")
        shown.select_option("#of-class", label="all")
        page.says("rows-count", "of 3")
        for i in range(3):
            if i == 2:
                # The last of its class: the filter goes with it.
                shown.select_option("#of-class", label=f"{NAME} label")
            shown.fill("#search", f"{NAME} {i}")
            page.until(
                "([id]) => document.querySelectorAll('#table tbody tr').length === 1 && "
                "document.querySelector('#chosen-row').textContent.includes(id)",
                f"{NAME} {i}",
            )
            shown.press("#search", "Enter")
            page.press("Delete", "Delete")
            page.number(number + i + 1)
        shown.fill("#search", "")
        page.says("rows-count", "of 30")
    else:
        page.press("p")
        for i in range(3):
            ids = page.ask("/api/plane/points")["ids"]
            # The chosen one is the next, as often as it takes.
            page.press(*["]"] * (ids.index(f"{NAME} {i}") + 1), "Delete", "Delete")
            page.number(number + i + 1)
            page.press("Escape")
    page.until("([name]) => !document.body.innerText.includes(name)", NAME)
    assert NAME not in begun.kept()
    begun.views()
    assert NAME not in begun.kept()
    shown.reload()
    shown.wait_for_selector("body[data-ready]", timeout=60_000)
    begun.views()
    assert NAME not in begun.kept()
    assert page.problems == []
    begun.context.close()
    assert begun.files() == []


def test_a_desk_keeps_nothing_of_the_forgotten(tmp_path, visit):
    path = fruit(tmp_path)
    begun = visit(path)
    page, shown = begun.page, begun.page.page
    shown.wait_for_selector(".desk .tile")
    for i in (1, 2):
        file = {"name": f"{NAME}{i}.png", "mimeType": "image/png", "buffer": picture(SKY, i)}
        shown.set_input_files(".desk input[type=file]", file)
        shown.wait_for_selector(f".tile[title^='{NAME}{i}']")
        page.press("n")
        shown.wait_for_selector("#ask[open]")
        shown.fill("#ask-input", f"{NAME} sky")
        shown.press("#ask-input", "Enter")
        own = "(one) => one.count === n && one.label.startsWith(name)"
        page.until(f"([name, n]) => studio.state.classes.some({own})", NAME, i)
    begun.views()
    assert begun.kept().count(NAME) > 5
    forget(path, f"{NAME}1.png", f"{NAME}2.png")
    page.until("([name]) => !document.body.innerText.includes(name)", NAME)
    assert NAME not in begun.kept()
    begun.views()
    assert NAME not in begun.kept()
    begun.context.close()
    assert begun.files() == []
