"""The page of a model of pictures in a real browser: files, a camera, and what it says of them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from tolerance import SINGLE
from typer.testing import CliRunner

from knowmore.cli.app import app
from knowmore.images.networks import is_installed

api = pytest.importorskip("playwright.sync_api", reason="needs playwright, for a real browser")
Image = pytest.importorskip("PIL.Image", reason="needs the extra images")
CHROMIUM = Path("/usr/bin/chromium")
if not CHROMIUM.exists():
    pytest.skip("needs Debian's chromium, for a real browser", allow_module_level=True)
if not is_installed():
    pytest.skip("needs the extra embeddings", allow_module_level=True)

pytestmark = pytest.mark.slow
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
]


def striped(i):
    """Stripes of a width and a colour that grow with the class, i // 8, in other noise each."""
    rng = np.random.default_rng(i)
    wide = np.indices((150, 200))[i // 8 % 2] // (4 + 6 * (i // 8)) % 2 * 150
    colours = np.array([1.0, 0.8, 0.2]) if i < 8 else np.array([0.2, 0.7, 1.0])
    return (wide[..., None] * colours + rng.integers(0, 100, (150, 200, 3))).astype(np.uint8)


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A taught model, its page, new pictures, and what `knowmore predict` says of these."""
    root = tmp_path_factory.mktemp("page")
    for i in range(16):
        place = root / ("new" if i % 8 > 5 else "old") / "ab"[i // 8]
        place.mkdir(parents=True, exist_ok=True)
        # JPEG and PNG: the browser decodes both as Pillow does.
        image = Image.fromarray(striped(i))
        image.save(place / f"{i}.{'png' if i % 2 else 'jpg'}")
    black = Image.new("RGB", (90, 90))
    black.save(root / "new" / "a" / "black.png")
    run("init", root / "m.km", "--features", "embedding")
    run("learn", root / "m.km", root / "old")
    run("export", root / "m.km", "--html", root / "m.html")
    with (root / "camera.mjpeg").open("wb") as video:
        for _ in range(30):
            Image.fromarray(striped(15)).resize((640, 480)).save(video, "JPEG")
    return root


@pytest.fixture(scope="module")
def said(folder):
    lines = run("predict", folder / "m.km", folder / "new", "--json").stdout.splitlines()
    return {one["id"]: one for one in map(json.loads, lines)}


@pytest.fixture(scope="module")
def browser(folder):
    with api.sync_playwright() as playwright:
        video = f"--use-file-for-fake-video-capture={folder / 'camera.mjpeg'}"
        started = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=[*ARGUMENTS, video]
        )
        yield started
        started.close()


@pytest.fixture
def page(browser, folder):
    """The page, ready; nothing may have gone wrong in it, or have been fetched, at the end."""
    opened = browser.new_page()
    wrong, fetched = [], []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda message: wrong.append(message.text))
    opened.on("request", lambda request: fetched.append(request.url.partition(":")[0]))
    opened.goto((folder / "m.html").as_uri())
    api.expect(opened.locator("#message")).to_have_text("Ready.", timeout=20_000)
    yield opened
    assert (wrong, {*fetched}) == ([], {"file", "blob"})
    opened.close()


def test_a_page_answers_as_the_command(page, folder, said):
    names = list(said)
    page.set_input_files("#file", [folder / "new" / name for name in names])
    api.expect(page.locator("#body tr")).to_have_count(len(names), timeout=60_000)
    with page.expect_download() as download:
        page.click("#download")
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    assert [row["picture"] for row in rows] == [Path(name).name for name in names]
    assert {row["unknown"] for row in rows} == {"true", "false"}
    for row, want in zip(rows, said.values(), strict=True):
        assert (row["label"], row["unknown"]) == (want["label"], str(want["unknown"]).lower())
        for name in "probability", "std":
            assert float(row[name]) == pytest.approx(want[name], abs=SINGLE)


def test_one_picture_and_what_is_none(page, folder, said):
    name, want = next((name, one) for name, one in said.items() if one["unknown"])
    page.set_input_files("#file", [folder / "new" / name])
    api.expect(page.locator("#answer .label")).to_have_text("unknown", timeout=20_000)
    api.expect(page.locator("#answer")).to_contain_text(f"most like {want['label']}.")
    assert page.locator("#answer meter").count() == 2
    api.expect(page.locator("#said")).to_contain_text("unknown, looks like ")
    broken = {"name": "none.png", "mimeType": "image/png", "buffer": b"no picture"}
    page.set_input_files("#file", [broken])
    api.expect(page.locator("#message")).to_have_text(
        '"none.png" cannot be read: it is no picture that this browser knows. Give a JPEG, PNG, '
        "WebP or GIF."
    )
    api.expect(page.locator("#answer .label")).to_have_count(0)


@pytest.mark.parametrize("width", [1100, 390])
def test_a_table_shows_all_on_every_width(width, page, folder, said):
    page.set_viewport_size({"width": width, "height": 800})
    broken = {"name": "none.png", "mimeType": "image/png", "buffer": b"no picture"}
    pictures = [
        {"name": one, "mimeType": "image/png", "buffer": (folder / "new" / one).read_bytes()}
        for one in said
    ]
    page.set_input_files("#file", [*pictures, broken])
    api.expect(page.locator("#body tr")).to_have_count(len(said) + 1, timeout=60_000)
    cells = page.locator("#body td")
    assert page.locator("#top th").all_inner_texts() == ["picture", "label", "probability", "std"]
    for place, want in enumerate(said.values()):
        label = want["label"]
        shown = f"unknown (looks like {label})" if want["unknown"] else label
        assert cells.nth(3 * place).inner_text() == shown
    # Each cell is in sight, and so is why a file is no answer.
    boxes = [one.bounding_box() for one in cells.all()]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
    assert cells.last.inner_text().startswith('"none.png" cannot be read: it is no picture')
    api.expect(page.locator("#answer .label")).to_have_count(1)
    api.expect(page.locator("#message")).to_have_text(
        f"1 of {len(said) + 1} files cannot be read: see the table."
    )


def test_the_camera(page):
    page.click("#camera")
    api.expect(page.locator("#answer .label")).to_have_text("b", timeout=30_000)
    assert page.locator("#video").is_visible()
    assert page.locator("#camera").inner_text() == "Stop the camera"
    page.click("#camera")
    assert not page.locator("#video").is_visible()
    assert page.locator("#seen").get_attribute("aria-label") == "The last picture of the camera"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 390])
def test_axe_finds_nothing(page, folder, said, scheme, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-core")
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    assert axe.Axe().run(page).response["violations"] == []
    page.set_input_files("#file", [folder / "new" / name for name in said])
    api.expect(page.locator("#body tr")).to_have_count(len(said), timeout=60_000)
    assert axe.Axe().run(page).response["violations"] == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
