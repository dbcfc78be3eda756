"""A service of a model of pictures answers about pictures, and refuses what it must."""

from __future__ import annotations

import io

import numpy as np
import pytest
from served import serving

import knowmore
from knowmore import GPClassifier
from knowmore.images import PictureDescriber
from knowmore.web import guard
from knowmore.workbench import Predictor

pytest.importorskip("python_multipart", reason="needs the extra serve")
Image = pytest.importorskip("PIL.Image", reason="needs the extra images")
pytest.importorskip("cv2", reason="needs the extra images")


def striped(seed, form="PNG", size=(40, 60)):
    """An encoded picture of stripes across or along."""
    noise = np.random.default_rng(seed).integers(0, 90, size)
    pixels = np.indices(size)[seed % 2] // 4 % 2 * 150 + noise
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, form)
    return file.getvalue()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A file that has learnt pictures by PHOG."""
    path = tmp_path_factory.mktemp("stripes") / "m.km"
    describer = PictureDescriber("phog")
    note, arrays = describer.kept()
    with knowmore.open(path, GPClassifier()) as store:
        store.set_notes(arrays, pictures=note)
        X = np.array(describer.vectors([striped(i) for i in range(10)]))
        store.add(X, ["across", "along"] * 5)
    return path


@pytest.fixture(scope="module")
def ask(model):
    with serving(model) as asked:
        yield asked


def want(model, pictures):
    with knowmore.open(model) as store:
        found = Predictor(store, 0.05, keep=False)(
            np.array(PictureDescriber("phog").vectors(pictures))
        )
    return [
        {"label": one.label, "probability": one.probability, "std": one.std, "unknown": one.unknown}
        for one in found
    ]


def form(*parts):
    """A multipart body of (name of the field, name of the file or None, content)."""
    body = b""
    for field, name, content in parts:
        file = f'; filename="{name}"' if name else ""
        head = f'--edge\r\nContent-Disposition: form-data; name="{field}"{file}\r\n\r\n'
        body += head.encode() + content + b"\r\n"
    return body + b"--edge--\r\n"


FORM = {"Content-Type": "multipart/form-data; boundary=edge"}


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_picture_is_a_body(kind, model, ask):
    picture = striped(21, kind)
    status, body = ask.post("/predict", picture, **{"Content-Type": f"image/{kind.lower()}"})
    assert status == 200
    assert body["version"] == 1
    assert body["predictions"] == [{"name": "picture", **want(model, [picture])[0]}]


def test_several_pictures_are_a_form(model, ask):
    pictures = [striped(i) for i in range(30, 50)]
    parts = [("files", f"{i}.png", picture) for i, picture in enumerate(pictures)]
    status, body = ask.post("/predict", form(*parts), **FORM)
    assert status == 200
    expected = want(model, pictures)
    assert [one.pop("name") for one in body["predictions"]] == [f"{i}.png" for i in range(20)]
    assert body["predictions"] == expected


def test_vectors_of_pictures_are_answered_as_before(model, ask):
    (vector,) = PictureDescriber("phog").vectors([striped(21)])
    status, body = ask.post("/predict", {"rows": [vector.tolist()]})
    assert (status, body["predictions"]) == (200, want(model, [striped(21)]))


BAD = {
    "unreadable": (
        [("files", "a.png", b"no picture")],
        422,
        "'a.png' cannot be read: it is not a picture in BMP, GIF, JPEG, PNG, PPM, TIFF, WEBP. "
        "Leave it out, or convert it.",
    ),
    "no file": (
        [("files", None, b"text")],
        422,
        "The part 'files' of the form is no file. Send files, as curl -F files=@NAME.jpg does.",
    ),
    "nothing": ([], 422, "The form has no file. Send files, as curl -F files=@NAME.jpg does."),
    "too many": (
        [("files", "a.png", b"")] * 101,
        422,
        "The form cannot be read: Too many files. Maximum number of files is 100.",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_forms_are_refused_in_words(bad, ask):
    parts, status, words = BAD[bad]
    assert ask.post("/predict", form(*parts), **FORM) == (status, {"detail": words})


def test_one_bad_picture_among_good_ones_is_named(ask):
    parts = [("files", "good.png", striped(1)), ("files", "cut.png", striped(2)[:200])]
    status, body = ask.post("/predict", form(*parts), **FORM)
    assert status == 422
    assert body["detail"].startswith("'cut.png' cannot be read: ")


def test_what_is_too_large_is_refused(ask, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2000)
    for size, words in (
        ((40, 60), "'picture' has 60 x 40 pixels, more than the 2,000 allowed. Reduce it."),
        ((80, 60), "'picture' has more than 4,000 pixels. Reduce it first."),
    ):
        answer = ask.post("/predict", striped(1, size=size), **{"Content-Type": "image/png"})
        assert answer == (413, {"detail": words})
    monkeypatch.setattr(guard, "_MOST_PICTURES", 100)
    status, body = ask.post("/predict", striped(1), **{"Content-Type": "image/png"})
    assert (status, body["detail"]) == (
        413,
        "A request may have at most 100 bytes. Send fewer pictures, or smaller ones.",
    )


def test_a_page_of_another_site_may_not_send_a_form(ask):
    body = form(("files", "a.png", striped(1)))
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200)):
        assert ask.post("/predict", body, **FORM, **{"Sec-Fetch-Site": site})[0] == status


def test_a_model_of_numbers_takes_no_picture(tmp_path):
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        store.add([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
    with serving(tmp_path / "m.km") as ask:
        answer = ask.post("/predict", striped(1), **{"Content-Type": "image/png"})
        assert answer == (
            415,
            {
                "detail": 'This model has learnt numbers, not pictures. Send {"rows": [[5.1, 3.5, '
                "...], ...]}, with Content-Type: application/json."
            },
        )
        assert ask.post("/predict", b"x", **{"Content-Type": "text/plain"})[0] == 415


CURL = "curl -H 'Content-Type: image/jpeg' --data-binary @NAME.jpg"


def test_who_does_not_send_a_picture_as_one_is_told_how(ask):
    plain = {"Content-Type": "application/x-www-form-urlencoded"}
    status, body, _ = ask("POST", "/predict", striped(0), plain)
    assert (status, body["detail"]) == (
        415,
        "Send JSON, with Content-Type: application/json. A model of pictures also takes one: "
        + CURL,
    )
    status, body = ask.post("/predict", {"rows": ["a.jpg"]})
    assert (status, body["detail"]) == (
        422,
        f"Row 0 is a text, and the model has learnt pictures. Send the picture itself: {CURL}",
    )


def test_the_schema_tells_of_pictures(ask):
    schema = ask.get("/openapi.json")[1]["paths"]["/predict"]["post"]["requestBody"]
    kinds = {"application/json", "image/jpeg", "image/png", "multipart/form-data"}
    assert schema["content"].keys() == kinds


@pytest.mark.slow(fast=1)
@pytest.mark.parametrize("mode", ["POSITIVE", "NEGATIVE"])
def test_nothing_fails_inside(mode, ask):
    schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings

    schema = schemathesis.openapi.from_dict(ask.get("/openapi.json")[1])
    schema.config.base_url = f"http://127.0.0.1:{ask.port}"
    operation = schema["/predict"]["POST"]

    @settings(
        max_examples=30,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(operation.as_strategy(generation_mode=schemathesis.GenerationMode[mode]))
    def answered(case):
        answer = case.call(timeout=30)
        assert answer.status_code < 500, (answer.text, case.as_curl_command())

    answered()
