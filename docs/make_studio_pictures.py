"""Write the pictures of the studio in images/: `python docs/make_studio_pictures.py`.

It takes Debian's chromium, playwright and pillow.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_wine
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import StandardScaler

import knowmore

IMAGES = Path(__file__).with_name("images")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]


def main() -> None:
    """Write all of them."""
    with sync_playwright() as playwright, TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        with opened(browser, folder) as page:
            draw(page)
        teach_wines(Path(folder))
        with opened(browser, folder, "wines.km", "--pool", "pool.csv") as page:
            draw_questions(page)
        new = paint(Path(folder))
        run = [sys.executable, "-m", "knowmore"]
        subprocess.run([*run, "init", "fruit.km", "--features", "colours"], cwd=folder, check=True)
        with opened(browser, folder, "fruit") as page:
            draw_desk(page, new)
        browser.close()


@contextmanager
def opened(browser: Any, folder: str, *arguments: str) -> Iterator[Any]:
    """A page of a studio in a folder."""
    command = [sys.executable, "-m", "knowmore", "studio", *arguments, "--no-open"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        page = browser.new_page(viewport={"width": 1180, "height": 800})
        page.goto(process.stdout.readline().strip())
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        yield page
        page.close()
        process.terminate()


def teach_wines(folder: Path) -> None:
    """A model of some wines, and a pool of others."""
    wines = load_wine(as_frame=True)
    table = pd.DataFrame(StandardScaler().fit_transform(wines.data), columns=wines.data.columns)
    names = np.array(["barolo", "grignolino", "barbera"])[wines.target]
    table.index = pd.Index([f"bottle {i}" for i in range(len(table))], name="id")
    held = np.random.default_rng(0).permutation(len(table))[:40]
    with knowmore.open(folder / "wines.km", knowmore.GPClassifier(RBF(4.0))) as store:
        store.add(table.iloc[held[:25]], names[held[:25]], contributor="ann")
        store.add(table.iloc[held[25:]], names[held[25:]], contributor="bob")
    table.drop(table.index[held]).to_csv(folder / "pool.csv")


def draw_questions(page: Any) -> None:
    """Some answers, and the table."""
    page.keyboard.press("q")
    page.wait_for_selector("#question-id")
    # The keys of the classes go by their names.
    keys = np.array(["2", "3", "1"])[load_wine().target]
    for _ in range(12):
        before = page.inner_text("#question-id")
        page.keyboard.press(keys[int(before.removeprefix("bottle "))])
        differs = "(id) => document.getElementById('question-id').textContent !== id"
        page.wait_for_function(differs, arg=before)
    page.wait_for_timeout(1000)
    keep(page, "studio-questions")
    page.keyboard.press("t")
    page.wait_for_selector("#row-3")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.wait_for_timeout(500)
    keep(page, "studio-table")


def paint(folder: Path) -> list[Path]:
    """A folder `fruit` of discs in three colours, and the paths of five that are not in it."""
    colours = {"apple": (205, 45, 35), "lime": (70, 170, 40), "plum": (110, 40, 140)}
    rng = np.random.default_rng(3)

    def disc(path: Path, colour: tuple[int, ...]) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        image = Image.new("RGB", (240, 240), tuple(rng.integers(225, 250, 3).tolist()))
        fill = tuple(np.clip(np.array(colour) + rng.integers(-25, 25, 3), 0, 255).tolist())
        x, y, r = (*rng.integers(80, 160, 2).tolist(), rng.integers(45, 75).item())
        ImageDraw.Draw(image).ellipse([x - r, y - r, x + r, y + r], fill=fill)
        image.save(path)
        return path

    for name, colour in colours.items():
        for i in range(10):
            disc(folder / "fruit" / name / f"{i}.png", colour)
    skies = [disc(folder / f"sky{i}.png", (20, 60, 210)) for i in range(3)]
    return [*skies, *(disc(folder / f"new{i}.png", colours["lime"]) for i in range(2))]


def draw_desk(page: Any, new: list[Path]) -> None:
    """Pictures that were brought, and wait."""
    page.set_viewport_size({"width": 1180, "height": 1120})
    page.set_input_files(".drop input", new)
    page.wait_for_selector(".queue .tile >> nth=4")
    page.wait_for_timeout(1500)
    keep(page, "studio-desk")


def draw(page: Any) -> None:
    """The plane at work as an animation, and then as it is."""
    page.click("[data-scene=moons]")
    page.wait_for_timeout(1500)
    frames = [shot(page)]
    box = page.locator("canvas.top").bounding_box()

    def at(x: float, y: float) -> tuple[float, float]:
        return box["x"] + (x + 1) / 2 * box["width"], box["y"] + (1 - y) / 2 * box["height"]

    page.keyboard.press("1")
    for x, y in [(-0.75, -0.7), (-0.6, -0.8), (-0.55, -0.62)]:
        page.mouse.click(*at(x, y))
        page.wait_for_timeout(700)
        frames += [shot(page)] * 2
    page.mouse.move(*at(-0.55, -0.62))
    page.mouse.down()
    for i in range(1, 11):
        page.mouse.move(*at(-0.55 + 0.13 * i, -0.62 + 0.145 * i))
        page.wait_for_timeout(300)
        frames.append(shot(page))
    page.mouse.up()
    page.wait_for_timeout(800)
    frames += [shot(page)] * 3
    for _ in range(4):
        page.keyboard.press("u")
        page.wait_for_timeout(700)
        frames.append(shot(page))
    small = [one.resize((320, 320)).quantize(48, dither=Image.Dither.NONE) for one in frames]
    small[0].save(
        IMAGES / "studio.gif", save_all=True, append_images=small[1:], duration=220, loop=0
    )
    page.keyboard.press("r")
    page.wait_for_timeout(700)
    for _ in range(3):
        page.keyboard.press("r")
        page.wait_for_timeout(500)
    page.mouse.move(5, 400)
    page.wait_for_timeout(1800)
    keep(page, "studio-plane")


def shot(page: Any) -> Image.Image:
    """The plane as it is now."""
    found = page.locator(".frame").screenshot()
    return Image.open(io.BytesIO(found)).convert("RGB")


def keep(page: Any, name: str) -> None:
    """Write the whole page, with few colours: that is a third of the size.

    Colours of few pixels stay, such as those of marks.
    """
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1).save(
        IMAGES / f"{name}.png", optimize=True
    )


if __name__ == "__main__":
    main()
