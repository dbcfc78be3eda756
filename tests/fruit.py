"""Small pictures of coloured discs on paper, and a model that has learnt folders of them."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw

import knowmore
from knowmore.workbench.learning import LearnOptions, learn

COLOURS = {"apple": (205, 45, 35), "lime": (70, 170, 40), "plum": (110, 40, 140)}
SKY = (20, 60, 210)


def painted(colour, seed, size=(64, 48)):
    """A disc of about this colour, at some place."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", size, tuple(int(one) for one in rng.integers(232, 250, 3)))
    near = tuple(int(np.clip(one + rng.integers(-12, 12), 0, 255)) for one in colour)
    x, y, r = (int(rng.integers(low, high)) for low, high in ((20, 44), (18, 30), (13, 17)))
    ImageDraw.Draw(image).ellipse([x - r, y - r, x + r, y + r], fill=near)
    return image


def encoded(image, kind="PNG", **options):
    """The bytes of its file."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def picture(colour, seed, **options):
    """A painted one as bytes."""
    return encoded(painted(colour, seed), **options)


def fruit(folder, each=6, estimator=None):
    """A model beside a folder of three classes, which it has learnt by their colours."""
    for c, (name, colour) in enumerate(COLOURS.items()):
        (folder / "fruit" / name).mkdir(parents=True)
        for i in range(each):
            painted(colour, 100 * c + i).save(folder / "fruit" / name / f"{i}.png")
    path = folder / "fruit.km"
    with knowmore.open(path, estimator or knowmore.GPClassifier()) as store:
        store.set_notes(features={"kind": "colours", "words": 2})
    asked = LearnOptions(
        path, str(folder / "fruit"), None, None, None, None, sync=False, dry_run=False
    )
    found, _ = learn(asked, lambda *_: None)
    assert found.added == 3 * each
    return path
