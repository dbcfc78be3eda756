"""What leaves a model of pictures begins with pixels, and answers as the model does."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from tolerance import assert_rounded
from typer.testing import CliRunner

import knowmore
from knowmore import GPClassifier
from knowmore.cli.app import app
from knowmore.errors import InvalidInput
from knowmore.export import to_html, to_onnx
from knowmore.images import Embedding, efficientnet_lite0
from knowmore.images.networks import Layer, is_installed
from knowmore.images.reading import small

Image = pytest.importorskip("PIL.Image", reason="needs the extra images")
pytest.importorskip("cv2", reason="needs the extra images")

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")
needs_network = pytest.mark.skipif(not is_installed(), reason="needs the extra embeddings")
# Networks compute in single precision.
SINGLE = np.finfo(np.float32).eps / np.finfo(float).eps
PLAIN = {"crop": 0.75, "mean": [0.1, 0.2, 0.3], "std": [0.5, 0.6, 0.7], "size": 6}
rng = np.random.default_rng(0)
PICTURES = rng.integers(0, 256, (12, 8, 8, 3), dtype=np.uint8)
LABELS = np.array([*"aaabbbcccabc"])


# -- ONNX ----------------------------------------------------------------------------------------


def network(onnx, path, *, last, maps, opset):
    """A small network of the user's own, over vectors or maps."""
    shape = "n, 6, 6, 3" if last else "n, 3, 6, 6"
    weights = ", ".join(map(repr, rng.normal(size=324).tolist()))
    steps = "{ flat = Flatten (x)  y = MatMul (flat, W) }"
    given, body = f"<float[108, 3] W = {{{weights}}}>", steps
    if maps:
        given, body = "", "{ y = Tanh (x) }"
    found = "n, a, b, c" if maps else "n, a"
    text = f"""<ir_version: 8, opset_import: ["": {opset}]>
        own (float[{shape}] x) => (float[{found}] y) {given} {body}"""
    onnx.save(onnx.parser.parse_model(text), path)
    return str(path)


def cut_out(pictures, embedding):
    """Pictures as the metadata of a graph say, (m, h, w, 3)."""
    side = embedding.size

    def one(picture):
        h, w = picture.shape[:2]
        half = min(h, w) * embedding.crop / 2
        box = (w / 2 - half, h / 2 - half, w / 2 + half, h / 2 + half)
        return np.asarray(Image.fromarray(picture).resize((side, side), 3, box))

    return np.stack([one(picture) for picture in pictures])


@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize("maps", [False, True], ids=["vectors", "maps"])
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_a_graph_has_the_users_network_before_the_model(last, maps, opset, tmp_path):
    onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    path = network(onnx, tmp_path / "own.onnx", last=last, maps=maps, opset=opset)
    seen = Embedding(path, **PLAIN)
    X = seen.transform(PICTURES)
    clf = GPClassifier().fit(X, LABELS)
    to_onnx(clf, tmp_path / "model.onnx", pictures=seen)
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    (given,) = session.get_inputs()
    assert (given.name, given.type, given.shape[1:]) == ("pictures", "tensor(uint8)", [6, 6, 3])
    label, _, probabilities, variance = session.run(None, {"pictures": cut_out(PICTURES, seen)})
    assert label.tolist() == clf.predict(X).tolist()
    # Scores go through the rounding of single precision in the network.
    assert_rounded(probabilities, clf.predict_proba(X), 1000 * SINGLE)
    assert_rounded(variance, clf.predict_variance(X), 1000 * SINGLE)
    about = session.get_modelmeta().custom_metadata_map
    assert {"kind", "columns", "classes", "pictures"} <= about.keys()
    assert about["pictures"].startswith("uint8 (m, 6, 6, 3), red, green and blue: ")
    assert "Image.resize((6, 6), BICUBIC, box) with the fractional box" in about["pictures"]
    assert about["pictures"].endswith("r is 0.75 / 2 of the shorter side")


def test_networks_that_cannot_be_before_a_model(tmp_path):
    onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
    clf = GPClassifier().fit(rng.normal(size=(4, 3)), [*"aabb"])
    two = '<ir_version: 8, opset_import: ["": 17]> own (float[n] x) => (float[n] y) {y = Tanh (x)}'
    onnx.save(onnx.parser.parse_model(two), tmp_path / "own.onnx")
    for model, words in {
        "precomputed": "model='precomputed' cannot be before a model in an ONNX file. Write a tor",
        str(tmp_path / "gone.onnx"): "gone.onnx' cannot be read: No such file or directory. Check",
        str(tmp_path / "own.onnx"): "turns ['n'] into ['n'], which cannot be before a model. Give",
    }.items():
        with pytest.raises(InvalidInput, match=re.escape(words)):
            to_onnx(clf, tmp_path / "model.onnx", pictures=Embedding(model))
    assert [one.name for one in tmp_path.iterdir()] == ["own.onnx"]


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """A model in a file that has learnt pictures by the network."""
    path = tmp_path_factory.mktemp("taught") / "m.km"
    for i, label in enumerate([*"aabbcc"]):
        folder = path.parent / "pictures" / label
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(striped(i)).save(folder / f"{i}.png")
    run("init", path, "--features", "embedding")
    run("learn", path, path.parent / "pictures")
    return path


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


def striped(i):
    """Stripes of a width that grows with i // 2, in other noise for each i."""
    noise = np.random.default_rng(i).integers(0, 80, (90, 120, 3))
    return (
        np.indices((90, 120))[i % 3 // 2][..., None] // (3 + i // 2 * 4) % 2 * 150 + noise
    ).astype(np.uint8)


@needs_network
@pytest.mark.slow
def test_a_graph_of_a_file_begins_with_pixels(taught, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    to, module = tmp_path / "m.onnx", tmp_path / "m.mjs"
    done = run("export", taught, "--onnx", to, "--javascript", module)
    assert done.stderr == (
        f"m.mjs takes the vectors of pictures: knowmore features NEW -o new.npz --like {taught} "
        "m.onnx takes pictures; its metadata say of which size.\n"
    )
    with knowmore.open(taught) as store:
        pictures = [striped(i) for i in range(20, 24)]
        X = Embedding().transform(pictures)
        session = runtime.InferenceSession(tmp_path / "m.onnx")
        inputs = {"pictures": cut_out(pictures, Embedding())}
        label, _, probabilities, variance = session.run(None, inputs)
        assert label.tolist() == store.predict(X).tolist()
        assert_rounded(probabilities, store.predict_proba(X), 1000 * SINGLE)
        assert_rounded(variance, store.predict_variance(X), 1000 * SINGLE)


@needs_network
@pytest.mark.slow
@pytest.mark.parametrize(("h", "w"), [(101, 163), (700, 431), (2001, 2407)])
def test_the_steps_of_the_documentation_are_those_of_predict(h, w, taught, tmp_path, monkeypatch):
    """Odd sides, so that the square begins between pixels; one that is reduced as it is read."""
    pytest.importorskip("onnxruntime")
    page = Path(__file__).parents[3] / "docs" / "export.md"
    (code,) = re.findall(r"```python\n(import numpy.*?)```", page.read_text("utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    run("export", taught, "--onnx", "animals.onnx")
    noise = np.random.default_rng(h).integers(0, 256, (h // 9 + 1, w // 9 + 1, 3))
    pixels = noise.astype(np.uint8).repeat(9, axis=0).repeat(9, axis=1)[:h, :w]
    Image.fromarray(pixels).save("new.jpg")
    found = {}
    exec(code, found)
    (said,) = map(json.loads, run("predict", taught, "new.jpg", "--json").stdout.splitlines())
    assert said["label"] == found["label"][0]
    assert_rounded(found["probabilities"].max(), said["probability"], 1000 * SINGLE)


# -- pages ---------------------------------------------------------------------------------------


def asked(code, given):
    """What a script of the page prints as JSON for `given`, run by node."""
    names = "resizing.js", "network.js"
    web = files("knowmore.export") / "web"
    scripts = "".join((web / name).read_text(encoding="utf-8") for name in names)
    read = 'const given = JSON.parse(require("node:fs").readFileSync(0, "utf8"));'
    run = subprocess.run(
        [NODE, "-e", f"{scripts}\n{read}\n{code}"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def as_given(picture):
    """A picture for JavaScript: four bytes a pixel."""
    rgba = np.dstack([picture, np.full(picture.shape[:2], 255, np.uint8)])
    h, w = picture.shape[:2]
    return {"data": rgba.ravel().tolist(), "width": w, "height": h}


SHAPES = {
    "small": (40, 64),
    "upright": (64, 40),
    "square": (30, 30),
    "reduced by a few": (49, 61),
    "far more rows": (160, 50),
    "far more columns": (50, 160),
    "first reduced by whole factors": (201, 307),
    "thin": (3, 200),
}


@needs_node
@pytest.mark.parametrize("shape", SHAPES)
def test_a_page_sees_the_bytes_that_the_network_sees(shape):
    """Every byte, by Pillow: reduced to 48 pixels, cut out around the centre, and resized."""
    import io

    picture = np.random.default_rng(1).integers(0, 256, (*SHAPES[shape], 3), dtype=np.uint8)
    code = """
    const small = thumbnail(given, 48), seen = resized(small, 24, 24, centre(small, 0.875));
    console.log(JSON.stringify([small, seen].map((one) => [...one.data])));
    """
    reduced, seen = asked(code, as_given(picture))
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    want = small(file.getvalue(), "a picture", 48)
    np.testing.assert_array_equal(np.reshape(reduced, (*want.shape[:2], 4))[..., :3], want)
    exact = Embedding("x.onnx", size=24, mean=0, std=1 / 255)._input(want, "it", (24, 24))
    rgb = np.reshape(seen, (24, 24, 4))[..., :3]
    np.testing.assert_array_equal(rgb, np.rint(np.moveaxis(exact, 0, 2)))


def own_layers():
    """All that a layer can be, for odd numbers of pixels too."""

    def layer(shape, stride, pads, groups, bounded, back):
        W, b = rng.normal(size=shape), rng.normal(size=shape[0])
        single = (W / np.sqrt(W[0].size)).astype(np.float32), b.astype(np.float32)
        return Layer(*single, stride, pads, groups, bounded, back)

    return (
        layer((4, 3, 3, 3), 2, (0, 1), 1, True, 0),
        layer((8, 4, 1, 1), 1, (0, 0), 1, True, 0),
        layer((8, 1, 5, 5), 1, (2, 2), 8, True, 0),
        layer((4, 8, 1, 1), 1, (0, 0), 1, False, 3),
        layer((8, 4, 1, 1), 1, (0, 0), 1, True, 0),
        layer((8, 1, 3, 3), 2, (0, 1), 8, True, 0),
        layer((12, 8, 1, 1), 1, (0, 0), 1, False, 0),
    )


@needs_node
@pytest.mark.parametrize("shape", [(10, 14), (12, 20)])
def test_a_page_runs_the_network(shape, monkeypatch):
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    from knowmore.export import viewing
    from knowmore.images import as_onnx

    layers = own_layers()
    monkeypatch.setattr(viewing, "efficientnet_lite0", lambda: layers)
    described, weights = viewing.View(Embedding(), 480).parts()
    picture = np.random.default_rng(2).integers(0, 256, (*shape, 3), dtype=np.uint8)
    code = """
    const ask = network(given.described, Float32Array.from(given.weights));
    console.log(JSON.stringify([...ask(given.picture)]));
    """
    given = {"described": described, "weights": weights.tolist(), "picture": as_given(picture)}
    scaled = ((picture / 255 - 127 / 255) / (128 / 255)).astype(np.float32)
    session = runtime.InferenceSession(as_onnx(layers).SerializeToString())
    (want,) = session.run(None, {"pictures": np.moveaxis(scaled, 2, 0)[None]})
    assert_rounded(np.array(asked(code, given)), want[0], 100 * SINGLE)


@needs_network
def test_a_page_of_pictures_holds_the_network_and_lets_nothing_out(tmp_path):
    clf = GPClassifier().fit(rng.normal(size=(4, 1280)), ["a", "b", "</script>", "b"])
    to_html(clf, tmp_path / "page.html", pictures=Embedding())
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.count("</script>") == 5
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src" not in policy
    assert "http" not in text.replace("http-equiv", "").partition('id="weights"')[0]
    assert "Tells 3 kinds of pictures: &lt;/script&gt;, a, b. It learnt from 4 examples" in text
    assert "EfficientNet-Lite0 (Tan and Le 2019), under the Apache License 2.0." in text
    count = sum(layer.W.size + layer.b.size for layer in efficientnet_lite0())
    (weights,) = re.findall(r'id="weights">([^<]*)<', text)
    assert len(weights) == -(-4 * count // 3) * 4


def test_a_page_runs_one_network_alone(tmp_path):
    clf = GPClassifier().fit(rng.normal(size=(4, 3)), [*"aabb"])
    words = "A page cannot run 'own.onnx': the only network that it knows is 'efficientnet-lite0'."
    with pytest.raises(InvalidInput, match=re.escape(words)):
        to_html(clf, tmp_path / "page.html", pictures=Embedding("own.onnx"))
    assert not any(tmp_path.iterdir())
