"""Embeddings by small torch modules whose answer is known."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.base import clone
from tolerance import assert_rounded

from knowmore import KnowmoreError
from knowmore.images import Embedding

torch = pytest.importorskip("torch", reason="needs torch")

PICTURES = np.random.default_rng(0).integers(0, 256, (5, 16, 16, 3), dtype=np.uint8)
PLAIN = {"size": 16, "crop": 1, "mean": 0, "std": 1}
# The network computes in single precision.
SINGLE = np.finfo(np.float32).eps / np.finfo(float).eps


class Flat(torch.nn.Module):
    """The numbers that it is given."""

    def forward(self, x):
        assert not torch.is_grad_enabled()
        assert not self.training
        return x.flatten(1)


class Spoilt(torch.nn.Module):
    """A network in training would drop out at random and learn from what it sees."""

    def __init__(self):
        super().__init__()
        self.frozen = torch.nn.BatchNorm2d(3).eval()
        self.moving = torch.nn.BatchNorm2d(3)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.dropout(self.moving(self.frozen(x)))


def test_the_network_is_given_scaled_pixels_in_its_order():
    mean, std = [0.1, 0.2, 0.3], [0.5, 0.6, 0.7]
    found = Embedding(Flat(), size=16, crop=1, mean=mean, std=std).fit_transform(PICTURES)
    want = ((PICTURES / 255 - mean) / std).transpose(0, 3, 1, 2).reshape(5, -1)
    assert found.dtype == float
    assert_rounded(found, want, SINGLE)


def test_pictures_are_cropped_around_their_centre_and_resized():
    wide = np.zeros((32, 64, 3), np.uint8)
    wide[8:24, 24:40] = PICTURES[0]
    found = Embedding(Flat(), **PLAIN | {"crop": 0.5}).transform(
        [wide, np.full((9, 7), 255, np.uint8)]
    )
    assert_rounded(found[0], PICTURES[0].transpose(2, 0, 1).ravel() / 255, SINGLE)
    assert_rounded(found[1], np.ones(3 * 16 * 16))


def test_maps_are_averaged():
    found = Embedding(torch.nn.Identity(), **PLAIN).transform(PICTURES)
    assert_rounded(found, PICTURES.mean(axis=(1, 2)) / 255, 256 * SINGLE)


@pytest.mark.parametrize("batch", [1, 2, 5, 100])
def test_batches_change_nothing(batch):
    seen = []

    class Counting(torch.nn.Module):
        def forward(self, x):
            seen.append(len(x))
            return x.flatten(1)

    found = Embedding(Counting(), batch=batch, **PLAIN).transform(PICTURES)
    np.testing.assert_array_equal(found, Embedding(Flat(), **PLAIN).transform(PICTURES))
    assert sum(seen) == 5
    assert max(seen) == min(batch, 5)


def test_the_network_is_left_as_it_was():
    network = Spoilt()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    one, other = (Embedding(network, **PLAIN).transform(PICTURES) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert all((before[name] == value).all() for name, value in network.state_dict().items())
    modes = [m.training for m in (network, network.frozen, network.moving, network.dropout)]
    assert modes == [True, False, True, True]


BAD = {
    "name": ({"model": "alexnet"}, ValueError, "model='alexnet' is not known. Choose one of 'effi"),
    "model": (
        {"model": 3},
        TypeError,
        "model is an int. Give a network, the path of an .onnx file, or a name.",
    ),
    "size": ({"size": 0}, ValueError, "size=0. Give a whole number of at least 1."),
    "batch": ({"batch": 2.5}, ValueError, "batch=2.5. Give a whole number of at least 1."),
    "crop": ({"crop": 0}, ValueError, "crop=0 must be a number in (0, 1]."),
    "mean": (
        {"mean": [1, 2]},
        ValueError,
        "mean=[1, 2] must be a number in (-inf, inf). Or give t",
    ),
    "std": (
        {"std": 0},
        ValueError,
        "std=0 must be a number in (0, inf). Or give three: for red, green and blue.",
    ),
    "words": ({"mean": "dark"}, ValueError, "mean='dark' must be a number in (-inf, inf). Or give"),
    "shape": (
        {"model": torch.nn.Flatten(0)},
        ValueError,
        "What the network returned has shape (3840,), but must be (n, d).",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_settings_are_reported(bad):
    settings, kind, words = BAD[bad]
    with pytest.raises(kind, match=re.escape(words)) as caught:
        Embedding(**{"model": Flat()} | PLAIN | settings).transform(PICTURES)
    assert isinstance(caught.value, KnowmoreError)


def test_a_failing_network_is_left_as_it_was():
    network = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(7, 7))
    with pytest.raises(RuntimeError, match="shape"):
        Embedding(network, **PLAIN).transform(PICTURES)
    assert all(module.training for module in network.modules())


def test_settings_survive_cloning():
    embedding = Embedding(size=100, crop=1.0, mean=[0.1, 0.2, 0.3], batch=7)
    assert clone(embedding).get_params() == embedding.get_params()
    assert isinstance(clone(Embedding(Flat())).model, Flat)
