"""The page in a real browser, with real mouse and keyboard, on a real file.

What it shows is compared with what the library says of the file.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.crash import shim
from tolerance import PIXEL, RESIDUAL, SLIDER, as_shown, close

import knowmore
from knowmore.insight import suspects

pytest.importorskip("uvicorn")
api = pytest.importorskip("playwright.sync_api", reason="needs playwright, for a real browser")
CHROMIUM = Path("/usr/bin/chromium")
if not CHROMIUM.exists():
    pytest.skip("needs Debian's chromium, for a real browser", allow_module_level=True)

ROOT = Path(__file__).parents[2]
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
# After SIGUSR1 the disk is full, until SIGUSR2.
FULL = f"""
import errno, os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from benchmarks.crash import shim
full = Path.cwd(), shim.FAIL_FROM, 4, errno.ENOSPC
signal.signal(signal.SIGUSR1, lambda *_: shim.arm(*full))
signal.signal(signal.SIGUSR2, lambda *_: shim.disarm())
"""
# After SIGUSR1 there is no room to write the file anew, until SIGUSR2.
CROWDED = """
import resource, signal
from knowmore.store import verification
usual = verification.vacuum
def vacuum(file):
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, -1))
    try:
        usual(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
signal.signal(signal.SIGUSR1, lambda *_: setattr(verification, "vacuum", vacuum))
signal.signal(signal.SIGUSR2, lambda *_: setattr(verification, "vacuum", usual))
"""


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield browser
        browser.close()


class Started:
    """`knowmore studio` in a folder, and what it printed first."""

    def __init__(self, folder, *arguments, begin="", env=None):
        script = f"{begin}\nfrom knowmore.cli import main\nmain()"
        command = [sys.executable, "-c", script, "studio", *arguments, "--no-open"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, cwd=folder, env=env, **pipes)
        self.address = self.process.stdout.readline().strip()

    def end(self, how=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.communicate(timeout=60)
        return self.process.returncode


class Page:
    """A page of a studio, as somebody sees it."""

    def __init__(self, page, path):
        self.page, self.path = page, path
        self.problems = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda said: said.type == "error" and self.problems.append(said.text))

    def text(self, selector):
        return self.page.inner_text(selector)

    def ask(self, path):
        return self.page.evaluate("path => fetch(path).then((one) => one.json())", path)

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def until(self, holds, *arguments):
        """Wait until this is true of the page."""
        self.page.wait_for_function(holds, arg=[*arguments], timeout=30_000)

    def says(self, name, words):
        """Wait until an element says this."""
        holds = "([id, words]) => document.getElementById(id).textContent.includes(words)"
        self.until(holds, name, words)

    def number(self, number):
        """Wait until the page shows this state of the journal."""
        self.until("([n]) => studio.state.number === n", number)

    def place(self, x, y):
        """Screen position of a place of the plane from -1 to 1."""
        box = self.page.locator("canvas.top").bounding_box()
        return box["x"] + (x + 1) / 2 * box["width"], box["y"] + (1 - y) / 2 * box["height"]

    def click(self, x, y, **options):
        self.page.mouse.click(*self.place(x, y), **options)

    def store(self):
        return knowmore.open(self.path)

    def agrees(self):
        """Figures beside the plane equal the file's."""
        with self.store() as store:
            left = store.leave_one_out()
            right = ((left.predicted == left.labels) & ~left.silent).mean()
            shown = self.text("#right").replace("\u202f", "").rstrip("%")
            if len(store.classes_) > 1:
                assert float(shown) == as_shown(100 * right, 1)
            else:
                # All of one class are right, which says nothing.
                assert shown == "\u2013"
            assert int(self.text("#count")) == len(store)
            evidence = float(self.text("#evidence"))
            assert evidence == as_shown(store.log_marginal_likelihood(), 1)


@pytest.fixture
def started(tmp_path):
    running = []

    def start(*arguments):
        running.append(Started(tmp_path, *arguments))
        return running[-1]

    yield start
    for one in running:
        one.end(signal.SIGKILL)


@pytest.fixture
def opened(browser, started, tmp_path):
    """A page on a new plane."""
    studio = started()
    context = browser.new_context(viewport={"width": 1100, "height": 800})
    page = Page(context.new_page(), tmp_path / "plane.km")
    page.page.goto(studio.address)
    page.page.wait_for_selector("body[data-ready]", timeout=60_000)
    page.studio, page.context = studio, context
    yield page
    context.close()
    assert page.problems == []


def test_the_mouse_teaches_and_the_file_learns(opened):
    assert re.match(r"http://127\.0\.0\.1:\d+/$", opened.page.url.partition("#")[0])
    opened.click(-0.5, 0.0)
    opened.number(1)
    opened.press("2")
    opened.click(0.5, 0.0)
    opened.number(2)
    opened.click(0.6, 0.2)
    opened.number(3)
    with opened.store() as store:
        assert store.examples.labels.tolist() == ["A", "B", "B"]
        assert np.allclose(store.examples.X, [[-0.5, 0], [0.5, 0], [0.6, 0.2]], atol=PIXEL)
    opened.agrees()
    # Drag the first to another place: its features change, and it stays who it is.
    mouse = opened.page.mouse
    mouse.move(*opened.place(-0.5, 0.0))
    mouse.down()
    mouse.move(*opened.place(-0.3, 0.3), steps=5)
    mouse.up()
    opened.number(4)
    with opened.store() as store:
        place = store.examples.X[store.examples.rows((0,))[0]]
        assert np.allclose(place, [-0.3, 0.3], atol=PIXEL)
        assert store.log()[-1].verb == "replace"
    # A number key relabels the chosen one, U takes it back, R gives it again.
    opened.click(0.6, 0.2)
    opened.press("1")
    opened.number(5)
    opened.press("u")
    opened.number(4)
    opened.press("r")
    opened.number(5)
    with opened.store() as store:
        assert sorted(store.examples.labels.tolist()) == ["A", "A", "B"]
    # A right click asks; what it offers forgets.
    opened.click(0.5, 0.0, button="right")
    opened.page.wait_for_selector(".menu:not([hidden])")
    opened.page.get_by_role("menuitem", name="Forget for ever").click()
    opened.number(6)
    with opened.store() as store:
        assert store.ids_.tolist() == [2, 0] or sorted(store.ids_.tolist()) == [0, 2]
        assert store.log()[-1].verb == "forget"
        assert store.verify().ok


@pytest.mark.slow
def test_the_keyboard_alone_suffices(opened):
    opened.page.locator("canvas.top").focus()
    opened.press("Shift+ArrowLeft", "Shift+ArrowLeft", "Enter")
    opened.number(1)
    opened.press("n")
    opened.page.wait_for_selector("#ask[open]")
    opened.page.keyboard.type("rose")
    opened.press("Enter")
    opened.says("live", "The next example is rose")
    opened.press("Shift+ArrowUp", "Shift+ArrowUp", "Enter")
    opened.number(2)
    with opened.store() as store:
        assert store.examples.labels.tolist() == ["A", "rose"]
        assert np.allclose(store.examples.X, [[-0.4, 0], [-0.4, 0.4]], atol=PIXEL)
    # Take it along, and drop it elsewhere.
    opened.press("]", "]", "m", "ArrowRight", "ArrowRight", "Enter")
    opened.number(3)
    opened.press("]", "Delete")
    assert "Press Delete again" in opened.text("#live")
    opened.press("Delete")
    opened.number(4)
    with opened.store() as store:
        assert len(store) == 1
    opened.press("v", "d", "e")
    assert opened.page.locator(".checks input:checked").count() == 0
    opened.press("?")
    assert "forget the chosen example" in opened.text("#keys")
    opened.press("Escape")


@pytest.mark.slow
def test_settings_and_scenes(opened):
    opened.page.click("[data-scene=moons]")
    opened.number(1)
    opened.says("line", "difference")
    opened.agrees()
    line = opened.text("#line")
    found = re.fullmatch(r"update [\d.]+ ms, refit [\d.]+ ms, difference (\S+)", line)
    assert float(found[1]) < RESIDUAL
    opened.page.locator("#set-noise").focus()
    opened.press("ArrowRight")
    opened.number(2)
    with opened.store() as store:
        assert store.noise_ == close(0.05 * 10**0.01, SLIDER)
    opened.agrees()
    assert opened.page.evaluate(
        "performance.getEntriesByType('resource').every("
        "(one) => new URL(one.name).host === location.host)"
    )


@pytest.mark.slow
def test_a_used_link_says_so_in_words(opened, browser):
    context = browser.new_context()
    page = context.new_page()
    for address, status in ((opened.studio.address, 403), (opened.page.url.partition("#")[0], 401)):
        assert page.goto(address).status == status
        assert page.locator("h1").inner_text() == "knowmore studio"
        assert "press Enter in the terminal" in page.inner_text("body")
    context.close()
    # A browser that is signed in reaches the page by the same link.
    again = opened.context.new_page()
    again.goto(opened.studio.address)
    again.wait_for_selector("body[data-ready]", timeout=60_000)
    again.close()


@pytest.mark.slow
def test_two_windows_and_another_process(opened):
    other = Page(opened.context.new_page(), opened.path)
    other.page.goto(opened.page.url)
    other.page.wait_for_selector("body[data-ready]", timeout=60_000)
    opened.click(0.1, 0.1)
    other.number(1)
    assert "Elsewhere: add of 1 example." in other.text("#live")
    with opened.store() as store:
        store.add([[0.5, 0.5]], ["B"])
    opened.number(2)
    other.number(2)
    assert opened.text("#count") == other.text("#count") == "2"


@pytest.mark.slow
def test_the_inbox_takes_one_key_an_answer(opened):
    opened.page.click("[data-scene=blobs]")
    opened.number(1)
    with opened.store() as store:
        wrong = store.ids_[[3, 30]].tolist()
        store.relabel(wrong, "plum")
    opened.number(2)
    opened.press("i")
    opened.page.wait_for_selector("#doubt h2")
    with opened.store() as store:
        first = suspects(store.estimator)
    assert opened.text("#doubt h2") == f"Example {first.ids[0]}"
    assert str(first.preferred[0]) in opened.text("#doubt")
    opened.press("a")
    opened.number(3)
    with opened.store() as store:
        label = store.examples.labels[store.examples.rows((first.ids[0].item(),))[0]]
        assert label == first.preferred[0]
        again = suspects(store.estimator)
    opened.until(
        "([id]) => document.querySelector('#doubt h2').textContent === `Example ${id}`",
        again.ids[0].item(),
    )
    before = opened.text("#inbox-count")
    opened.press("k")
    opened.says("live", f"{again.ids[0]} stays")
    assert opened.text("#inbox-count") != before
    # U takes back what was kept, then what was accepted, and each is asked again.
    opened.press("u")
    opened.says("live", "is open again.")
    assert opened.text("#inbox-count") == before
    assert opened.text("#doubt h2") == f"Example {again.ids[0]}"
    with opened.store() as store:
        assert store.kept_.tolist() == []
    opened.press("j", "u")
    opened.number(2)
    opened.says("doubt", f"Example {first.ids[0]}")
    # What cannot be taken back is said twice, without Escape in between.
    opened.press("Delete", "Escape", "Delete")
    opened.says("live", "Press Delete again")
    opened.press("Escape")
    assert opened.text("#live") == ""
    opened.press("9")
    assert opened.text("#live") == "There is no class 9 yet. N makes one."
    with opened.store() as store:
        assert first.ids[0] in store.ids_


@pytest.mark.slow
def test_a_kept_label_outlives_the_page(opened):
    opened.page.click("[data-scene=blobs]")
    opened.number(1)
    with opened.store() as store:
        store.relabel(store.ids_[[3]], "plum")
        (doubt,) = suspects(store.estimator).ids.tolist()
    opened.number(2)
    opened.press("i")
    opened.says("doubt", f"Example {doubt}")
    opened.press("k")
    opened.says("doubt", "No doubt is left")
    assert "1 label in doubt was kept." in opened.text("#doubt")
    opened.page.reload()
    opened.page.wait_for_selector("#doubt h2")
    assert opened.text("#doubt h2") == "No doubt is left"
    with opened.store() as store:
        assert store.kept_.tolist() == [doubt]
        store.relabel(doubt, "lime")
        store.relabel(doubt, "plum")
    opened.number(4)
    opened.says("doubt", f"Example {doubt}")


@pytest.mark.slow
def test_forgetting_is_said_twice_and_a_held_key_says_it_once(opened):
    opened.click(0.3, 0.3)
    opened.number(1)
    opened.press("u")
    opened.says("live", "Undone")
    opened.press("u")
    assert opened.text("#live") == "There is nothing to undo."
    opened.press("r")
    opened.says("live", "Done again")
    opened.press("]")
    opened.page.keyboard.down("Delete")
    opened.page.keyboard.down("Delete")
    opened.page.keyboard.up("Delete")
    opened.press("Escape", "t", "Delete", "Escape", "Delete", "p")
    assert opened.text("#live") == ""
    with opened.store() as store:
        assert len(store) == 1
    opened.press("]", "Delete", "Delete")
    opened.says("live", "Forgotten for ever")
    opened.press("u")
    words = "There is nothing to undo: what was forgotten for ever stays so."
    assert opened.text("#live") == words


@pytest.mark.slow
def test_classes_without_examples_outlive_a_reload_and_the_view_stays(opened):
    opened.click(0.3, 0.3)
    opened.number(1)
    opened.press("n")
    opened.page.wait_for_selector("#ask[open]")
    opened.page.keyboard.type("frog")
    opened.press("Enter")
    opened.page.reload()
    opened.page.wait_for_selector("body[data-ready]", timeout=60_000)
    assert opened.page.evaluate("studio.classes.map((one) => one.label)") == ["A", "B", "frog"]
    opened.press("3")
    opened.click(-0.3, -0.3)
    opened.number(2)
    # Earlier versions kept labels in the browser; what others keep there stays.
    kept = {"slots plane.km": "frog", "pending plane.km": "frog", "slots": "of somebody else"}
    opened.page.evaluate("kept => Object.assign(localStorage, kept)", kept)
    opened.page.reload()
    opened.page.wait_for_selector("body[data-ready]", timeout=60_000)
    assert opened.page.evaluate("({ ...localStorage })") == {"slots": "of somebody else"}
    assert opened.page.evaluate("studio.classes.map((one) => one.label)") == ["A", "B", "frog"]
    with opened.store() as store:
        assert store.examples.labels.tolist() == ["A", "frog"]
        assert np.allclose(store.examples.X, [[0.3, 0.3], [-0.3, -0.3]], atol=PIXEL)


@pytest.mark.slow
def test_history_leads_back(opened):
    for i in range(3):
        opened.click(-0.5 + 0.4 * i, 0.2)
        opened.number(i + 1)
    opened.press("h")
    opened.until(
        "() => document.getElementById('past-words').textContent.includes('After entry 3')"
    )
    opened.press("ArrowLeft")
    opened.until(
        "() => document.getElementById('past-words').textContent.includes('entry 2: 2 exam')"
    )
    opened.press("Home")
    opened.until(
        "() => document.getElementById('past-words').textContent.includes('entry 0: 0 exam')"
    )
    opened.page.select_option("#whose", "studio")
    opened.page.click("#verify")
    opened.says("certificate", "Verified.")
    with opened.store() as store:
        assert len(store) == 3


@pytest.mark.slow
def test_a_studio_that_is_killed_loses_nothing_and_the_page_says_so(opened, started, browser):
    opened.click(0.3, 0.3)
    opened.number(1)
    assert opened.studio.end(signal.SIGKILL) == -signal.SIGKILL
    opened.page.wait_for_selector("#away:not([hidden])", timeout=30_000)
    assert "Every edit that was confirmed is in the file." in opened.text("#away")
    # It goes on asking, in vain, which a browser notes as an error.
    opened.page.close()
    opened.problems.clear()
    with opened.store() as store:
        assert len(store) == 1
        assert store.verify().ok
    again = started()
    context = browser.new_context()
    page = context.new_page()
    page.goto(again.address)
    page.wait_for_selector("body[data-ready]", timeout=60_000)
    assert page.inner_text("#count") == "1"
    context.close()
    assert again.end() == 130


@pytest.mark.slow
def test_a_page_that_is_closed_in_the_middle_of_an_edit_leaves_a_sound_file(opened):
    other = opened.context.new_page()
    other.goto(opened.page.url)
    other.wait_for_selector("body[data-ready]", timeout=60_000)
    opened.click(0.3, 0.3)
    opened.number(1)
    # It does not wait for the answer.
    other.evaluate(
        "void studio.act({ verb: 'add', plane: [[0.5, 0.5]], y: ['B'] }, () => '')",
    )
    other.close()
    opened.click(-0.3, 0.3)
    # The other page's edit may come first, last, or not at all.
    for _ in range(600):
        with opened.store() as store:
            if [-0.3, 0.3] in store.examples.X.round(2).tolist():
                break
        opened.page.wait_for_timeout(100)
    with opened.store() as store:
        assert store.verify().ok
        places = {tuple(row) for row in store.examples.X.round(2).tolist()}
        assert {(0.3, 0.3), (-0.3, 0.3)} <= places <= {(0.3, 0.3), (-0.3, 0.3), (0.5, 0.5)}


@pytest.mark.slow
def test_an_edit_that_nobody_answers_is_not_shown_as_learnt(opened):
    opened.click(0.3, 0.3)
    opened.number(1)
    opened.studio.end(signal.SIGKILL)
    opened.click(-0.3, 0.3)
    opened.says("live", "Whether this edit is in the file is not known")
    opened.page.wait_for_selector("#away:not([hidden])")
    opened.page.close()
    opened.problems.clear()
    with opened.store() as store:
        assert len(store) == 1


@pytest.mark.slow
def test_a_full_disk_is_told_and_nothing_is_lost(browser, tmp_path):
    if missing := shim.missing():
        pytest.skip(missing)
    studio = Started(tmp_path, env=shim.environment(), begin=FULL)
    context = browser.new_context(viewport={"width": 1100, "height": 800})
    page = Page(context.new_page(), tmp_path / "plane.km")
    try:
        page.page.goto(studio.address)
        page.page.wait_for_selector("body[data-ready]", timeout=60_000)
        page.click(0.3, 0.3)
        page.number(1)
        studio.process.send_signal(signal.SIGUSR1)
        page.click(-0.3, 0.3)
        page.says("live", "Nothing was changed.")
        assert page.text("#count") == "1"
        studio.process.send_signal(signal.SIGUSR2)
        page.click(-0.4, 0.4)
        page.number(2)
        page.agrees()
    finally:
        context.close()
        studio.end(signal.SIGKILL)


@pytest.mark.slow
def test_bytes_that_may_be_left_are_told_on_the_page(browser, tmp_path):
    studio = Started(tmp_path, begin=CROWDED)
    context = browser.new_context(viewport={"width": 1100, "height": 800})
    page = Page(context.new_page(), tmp_path / "plane.km")
    try:
        page.page.goto(studio.address)
        page.page.wait_for_selector("body[data-ready]", timeout=60_000)
        for i in range(4):
            page.click(0.3 - 0.2 * i, 0.3)
            page.number(i + 1)
        studio.process.send_signal(signal.SIGUSR1)
        page.press("]", "Delete", "Delete")
        page.number(5)
        page.says("live", "Bytes of what was forgotten may be left in plane.km: the disk or its")
        studio.process.send_signal(signal.SIGUSR2)
        page.press("h")
        page.page.click("#verify")
        page.says("certificate", "Verified.")
    finally:
        context.close()
        studio.end(signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 390])
def test_axe_finds_nothing(opened, scheme, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-core")
    page = opened.page
    page.emulate_media(color_scheme=scheme)
    page.click("[data-scene=moons]")
    opened.number(1)
    with opened.store() as store:
        # So that there is a doubt to show.
        store.relabel([3, 40], ["moon", "sun"])
    opened.number(2)
    page.set_viewport_size({"width": width, "height": 800})
    names = page.evaluate("studio.views.filter((one) => !one.tab.disabled).map((one) => one.name)")
    assert {"plane", "inbox", "history"} <= set(names)
    for name in names:
        page.evaluate("name => studio.open(studio.views.find((one) => one.name === name))", name)
        answer = axe.Axe().run(page).response
        found, done = answer["violations"], answer["passes"]
        said = [f"{one['id']}: {node['target']}" for one in found for node in one["nodes"]]
        assert (name, said, bool(done)) == (name, [], True)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert (name, wide) == (name, width)
    opened.press("?")
    assert axe.Axe().run(page).response["violations"] == []
