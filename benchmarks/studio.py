"""How fast the studio answers, in a real browser: `python -m benchmarks.studio [CLICKS]`.

It takes Debian's chromium and playwright. Times are what a person would see, painting included.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from time import perf_counter, sleep
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright
from sklearn.gaussian_process.kernels import RBF

import knowmore

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
COUNT = "performance.getEntriesByName('click to field').length"


def main(clicks: int = 40) -> None:
    static = files("knowmore.web").joinpath("static")
    size = sum(len(one.read_bytes()) for one in static.iterdir())
    print(f"the page: {size / 1000:.0f} kB")
    sizes = (500, 2000)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        for n in sizes:
            path = made(Path(folder) / f"{n}.km", n)
            with opened(browser, path) as page:
                print(f"n = {n}: {shown(click_times(page, clicks))} from click to field")
                print(f"n = {n}: {shown(answer_times(page, clicks // 2))} from answer to ranking")
        path = made(Path(folder) / "many.km", 10_000, knowmore.LinearGPClassifier())
        with opened(browser, path) as page:
            print(f"10,000 points: {frames(page):.0f} frames a second while dragging")
        path = made(Path(folder) / "rows.km", 100_000, knowmore.LinearGPClassifier())
        with opened(browser, path) as page:
            print(f"100,000 rows: {shown(page_times(page))} for a page of the table")
        browser.close()
        crowd(made(Path(folder) / "crowd.km", 500))


def crowd(path: Path, tabs: int = 20, rate: int = 50, seconds: float = 60.0) -> None:
    """Many tabs that listen while one edits, so many times a second."""
    with started(path) as (process, address):
        port, query = (
            int(address.rpartition("/")[0].rpartition(":")[2]),
            address[address.index("/?") :],
        )
        visitor = HTTPConnection("127.0.0.1", port)
        visitor.request("GET", query)
        answer = visitor.getresponse()
        answer.read()
        own = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
        heard, lock = [0] * tabs, Lock()

        def listen(tab: int) -> None:
            stream = HTTPConnection("127.0.0.1", port)
            stream.request("GET", "/events", headers=own)
            for line in stream.getresponse():
                if line.startswith(b"id: "):
                    with lock:
                        heard[tab] = int(line[4:])

        for tab in range(tabs):
            Thread(target=listen, args=(tab,), daemon=True).start()
        sleep(1)
        before, begin, number = memory(process.pid), perf_counter(), 0
        edits = int(rate * seconds)
        for i in range(edits):
            edit = {"verb": "relabel", "ids": [i % 400], "y": ("up", "down")[i // 400 % 2]}
            headers = {
                **own,
                "Content-Type": "application/json",
                "Origin": f"http://127.0.0.1:{port}",
                "Idempotency-Key": f"number {i:08}",
            }
            visitor.request("POST", "/api/edit", json.dumps(edit), headers)
            number = json.loads(visitor.getresponse().read())["number"]
            sleep(max(begin + (i + 1) / rate - perf_counter(), 0))
        took = perf_counter() - begin
        sleep(2)
        right = sum(one == number for one in heard)
        print(
            f"{tabs} tabs, {edits / took:.0f} edits a second for {took:.0f} s: {right} of {tabs} "
            f"end with entry {number}; memory {before:.0f} MB, then {memory(process.pid):.0f} MB"
        )


def memory(pid: int) -> float:
    """Resident memory of a process in megabytes."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1000


def made(path: Path, n: int, estimator: Any = None) -> Path:
    """A file of n examples in the plane, some of them with a wrong label."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2))
    y = np.where(np.sin(4 * X[:, 0]) > X[:, 1], "up", "down")
    wrong = rng.random(n) < 0.05
    y[wrong] = np.where(y[wrong] == "up", "down", "up")
    with knowmore.open(path, estimator or knowmore.GPClassifier(RBF(0.3), noise=0.1)) as store:
        store.add(X, y)
    return path


@contextmanager
def started(path: Path) -> Any:
    """The studio of a file, and its address."""
    command = [sys.executable, "-m", "knowmore", "studio", str(path), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.terminate()


@contextmanager
def opened(browser: Any, path: Path) -> Any:
    """A page on a file, from the command to where it can be used."""
    begin = perf_counter()
    with started(path) as (_, address):
        context = browser.new_context(viewport={"width": 1200, "height": 900})
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("body[data-ready]", timeout=120_000)
        print(f"{path.stem}: {perf_counter() - begin:.1f} s from the start to a usable page")
        yield page
        context.close()


def click_times(page: Any, clicks: int) -> list[float]:
    """Milliseconds from a click until the field with the new example is painted."""
    box, rng = page.locator("canvas.top").bounding_box(), np.random.default_rng(1)
    # No fit from scratch in between.
    page.evaluate("performance.clearMeasures()")
    while (done := count(page)) < clicks:
        # At the edge there are no examples that it could meet instead.
        u, v = rng.uniform(0.02, 0.1), rng.uniform(0.02, 0.98)
        page.mouse.click(box["x"] + u * box["width"], box["y"] + v * box["height"])
        if page.evaluate("document.querySelector('.panel section:nth-child(3)').hidden"):
            page.wait_for_function(f"() => {COUNT} > {done}", timeout=60_000)
            page.wait_for_timeout(100)
        else:
            page.keyboard.press("Escape")
    script = "performance.getEntriesByName('click to field').map((one) => one.duration)"
    times: list[float] = page.evaluate(script)
    return times


def count(page: Any) -> int:
    found: int = page.evaluate(COUNT)
    return found


ANSWERED = """() => {
    const text = () => document.getElementById('doubt').textContent;
    window.answers_ = [];
    document.addEventListener('keydown', ({ key, timeStamp }) => {
        if (key !== 'a') return;
        const before = text();
        const look = () => {
            if (text() === before) requestAnimationFrame(look);
            else requestAnimationFrame(() => window.answers_.push(performance.now() - timeStamp));
        };
        look();
    }, true);
}"""


def answer_times(page: Any, answers: int) -> list[float]:
    """Milliseconds from a key in the inbox until the ranking without it is painted."""
    page.keyboard.press("i")
    page.wait_for_selector(".doubts li", timeout=60_000)
    page.evaluate(ANSWERED)
    for i in range(answers):
        page.keyboard.press("a")
        page.wait_for_function(f"() => window.answers_.length > {i}", timeout=60_000)
        page.wait_for_timeout(100)
    times: list[float] = page.evaluate("window.answers_")
    page.keyboard.press("p")
    return times


def page_times(page: Any) -> list[float]:
    """Milliseconds from a question to a page of the table, of every kind but the first."""
    asked: list[dict[str, Any]] = [{"sort": one} for one in ("id", "label", "unseen", 0, 1)]
    asked += [{"search": "99"}, {"label": "up"}, {"unseen": "wrong", "sort": 1, "down": True}]
    turns = [{**one, "offset": offset} for one in asked for offset in (0, 50, 5000)]
    script = """async (bodies) => {
        const times = [];
        for (const body of [{}, ...bodies]) {
            const begin = performance.now();
            const headers = { 'Content-Type': 'application/json' };
            const options = { method: 'POST', headers, body: JSON.stringify(body) };
            await (await fetch('/api/rows', options)).json();
            times.push(performance.now() - begin);
        }
        return times.slice(1);
    }"""
    times: list[float] = page.evaluate(script, turns)
    return times


def frames(page: Any) -> float:
    """Frames a second while an example is dragged."""
    points = page.evaluate("fetch('/api/plane/points').then((one) => one.json())")
    bounds = page.evaluate("studio.state.plane.bounds")
    box = page.locator("canvas.top").bounding_box()
    x = box["x"] + (points["x"][0] - bounds["x0"]) / (bounds["x1"] - bounds["x0"]) * box["width"]
    y = box["y"] + (bounds["y1"] - points["y"][0]) / (bounds["y1"] - bounds["y0"]) * box["height"]
    page.evaluate(
        "() => { window.frames_ = 0; const on = () => { window.frames_ += 1; "
        "requestAnimationFrame(on); }; on(); }"
    )
    page.mouse.move(x, y)
    page.mouse.down()
    begin, first, turn = perf_counter(), page.evaluate("window.frames_"), 0
    while perf_counter() - begin < 3:
        turn += 1
        page.mouse.move(x + 50 * np.cos(turn / 10), y + 50 * np.sin(turn / 10))
    rate = (page.evaluate("window.frames_") - first) / (perf_counter() - begin)
    page.keyboard.press("Escape")
    page.mouse.up()
    return float(rate)


def shown(times: list[float]) -> str:
    median, most = np.quantile(times, [0.5, 0.95])
    return f"{median:.0f} ms (p95 {most:.0f} ms)"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
