"""Embeddings by small networks in ONNX files, with axes in either order."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from tolerance import assert_rounded

from knowmore import KnowmoreError
from knowmore.images import Cache, Embedding, extract

onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
pytest.importorskip("onnxruntime", reason="needs the extra onnx")
Image = pytest.importorskip("PIL.Image", reason="needs the extra images")
pytest.importorskip("cv2", reason="needs the extra images")

rng = np.random.default_rng(0)
PICTURES = rng.integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)
PLAIN = {"crop": 1, "mean": 0, "std": 1}
WEIGHTS = rng.normal(size=(192, 4)).astype(np.float32)
SINGLE = np.finfo(np.float32).eps / np.finfo(float).eps


def written(path, shape, operator="vectors", kind=None):
    """A network that multiplies all pixels with WEIGHTS, or returns them as maps."""
    helper, floats = onnx.helper, kind or onnx.TensorProto.FLOAT
    weights = onnx.numpy_helper.from_array(WEIGHTS, "weights")
    if operator == "maps":
        nodes, weights = [helper.make_node("Identity", ["x"], ["y"])], None
    else:
        nodes = [
            helper.make_node("Flatten", ["x"], ["flat"]),
            helper.make_node("MatMul", ["flat", "weights"], ["y"]),
        ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("x", floats, shape)],
        [helper.make_tensor_value_info("y", floats, None)],
        [] if weights is None else [weights],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def flat(pictures, last):
    scaled = pictures / 255
    return (scaled if last else np.moveaxis(scaled, 3, 1)).reshape(len(pictures), -1)


SHAPES = {
    "first": (["n", 3, 8, 8], False),
    "last": (["n", 8, 8, 3], True),
    "one at a time": ([1, 3, 8, 8], False),
    "two at a time": ([2, 8, 8, 3], True),
    "of any size": (["n", 3, "h", "w"], False),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_file_says_how_pictures_are_laid_out(tmp_path, shape):
    axes, last = SHAPES[shape]
    path = written(tmp_path / "net.onnx", axes)
    # The size of the file counts, where it has one.
    size = {"size": 8} if shape == "of any size" else {"size": 99}
    found = Embedding(path, **size, **PLAIN).transform(PICTURES)
    assert found.dtype == float
    assert_rounded(found, flat(PICTURES, last) @ WEIGHTS, 1000 * SINGLE)
    np.testing.assert_array_equal(Embedding(str(path), **size, **PLAIN).transform(PICTURES), found)


@pytest.mark.parametrize("shape", [["n", 3, 8, 8], ["n", 8, 8, 3]], ids=["first", "last"])
def test_maps_are_averaged(tmp_path, shape):
    path = written(tmp_path / "net.onnx", shape, "maps")
    found = Embedding(path, **PLAIN).transform(PICTURES)
    assert_rounded(found, PICTURES.mean(axis=(1, 2)) / 255, 1000 * SINGLE)


def test_another_file_of_the_same_name_is_another_network(tmp_path):
    embedding = Embedding(written(tmp_path / "net.onnx", ["n", 3, 8, 8]), **PLAIN)
    assert embedding.transform(PICTURES).shape == (5, 4)
    written(tmp_path / "net.onnx", ["n", 3, 8, 8], "maps")
    assert embedding.transform(PICTURES).shape == (5, 3)


def test_extraction_and_its_cache_know_the_network_by_its_content(tmp_path):
    for i, picture in enumerate(PICTURES):
        Image.fromarray(picture).save(tmp_path / f"{i}.png")
    files = sorted(tmp_path.glob("*.png"))
    one = Embedding(written(tmp_path / "one.onnx", ["n", 3, 8, 8]), **PLAIN)
    same = Embedding(written(tmp_path / "same.onnx", ["n", 3, 8, 8]), **PLAIN)
    other = Embedding(written(tmp_path / "other.onnx", ["n", 3, 8, 8], "maps"), **PLAIN)
    with Cache(tmp_path) as cache:
        found = extract(files, [one], cache=cache)
        assert found.computed == 5
        np.testing.assert_array_equal(found.features, one.transform(PICTURES))
        assert extract(files, [same], cache=cache).computed == 0
        assert extract(files, [other], cache=cache).features.shape == (5, 3)


BAD = {
    "axes": (["n", 4, 8, 8], None, "takes tensor(float) ['n', 4, 8, 8]. Give a network with one"),
    "table": (["n", 192], None, "takes tensor(float) ['n', 192]. Give a network with one input"),
    "type": (["n", 3, 8, 8], 11, "takes tensor(double) ['n', 3, 8, 8]. Give a network with one"),
}


@pytest.mark.parametrize("bad", BAD)
def test_other_networks_are_refused(tmp_path, bad):
    shape, kind, words = BAD[bad]
    path = written(tmp_path / "net.onnx", shape, "maps", kind)
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        Embedding(path, **PLAIN).transform(PICTURES)
    assert isinstance(caught.value, KnowmoreError)


def test_files_that_are_no_networks_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"none\.onnx' cannot be read: No such file"):
        Embedding(tmp_path / "none.onnx").transform(PICTURES)
    (tmp_path / "text.onnx").write_text("no network")
    with pytest.raises(ValueError, match=r"text\.onnx' cannot be loaded as ONNX: "):
        Embedding(tmp_path / "text.onnx").transform(PICTURES)


@pytest.mark.slow
def test_a_missing_library_says_which_extra_brings_it(tmp_path):
    path = written(tmp_path / "net.onnx", ["n", 3, 8, 8])
    code = (
        "import sys, numpy as np\nsys.modules['onnxruntime'] = None\n"
        "from knowmore.images import Embedding\n"
        f"try:\n    Embedding({str(path)!r}).transform([np.zeros((9, 9))])\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("onnxruntime is not installed. It comes with the extra 'onnx'")
