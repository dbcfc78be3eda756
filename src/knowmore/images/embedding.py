"""Embeddings: vectors of pictures by a neural network.

EfficientNet-Lite0 and networks in ONNX files go over pictures by threads of ours, a few pictures at
a time: libraries that share one picture among threads have these wait for each other, which costs
more than half of the time on two cores, and far more on a busy machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import cache, lru_cache
from os import PathLike
from threading import local
from typing import Any, final

import joblib
import numpy as np

from knowmore._base import Array, a_type, choice, number, optional, whole_number
from knowmore.errors import InvalidInput, InvalidType
from knowmore.images.networks import EXTRA, WIDTH, as_onnx, efficientnet_lite0
from knowmore.images.reading import VectorTransformer, named, pixels, refuse_masked, threaded

NAMES = ("efficientnet-lite0", "precomputed")
# So few pictures go through a network at once in each thread: what they need stays in the cache.
_PART = 2
_PROVIDERS = ("CPUExecutionProvider",)


@final
@dataclass(eq=False, repr=False)
class Embedding(VectorTransformer):
    """The vector that a network gives for each picture.

    Parameters
    ----------
    model : "efficientnet-lite0", trained on ImageNet, 1280 numbers; the path of an .onnx file; any
        torch module that takes float32 (n, 3, size, size) and returns (n, d) or maps (n, d, h, w),
        which are averaged; or "precomputed" for vectors (n, d) that were computed elsewhere, of
        pictures, texts or anything else, and are returned unchanged
    size : the pixels along each side that the network wants; an .onnx file may say it itself
    crop : the part of the shorter side that is kept, around the centre of the picture
    mean, std : what the network wants subtracted from pixels in [0, 1], and what they are then
        divided by: a number, or one for each of red, green and blue
    batch : how many pictures go through the network at once, at most

    The defaults are those of EfficientNet-Lite. A network in an .onnx file has one input, float
    (n, 3, h, w) or (n, h, w, 3); of its outputs the first counts, vectors or maps. It needs the
    extra `onnx`, EfficientNet-Lite0 the extra `embeddings`. A torch module runs on the device of
    its parameters, in evaluation mode and without gradients, and is then put back in its former
    mode.
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
        pictures = named(X)
        if self.is_shared:
            found = self._in_threads(pictures)
        else:
            with _evaluating(self.model):
                found = [
                    _asked(self.model, self._inputs(pictures[i : i + self.batch]))
                    for i in range(0, len(pictures), self.batch)
                ]
        return _vectors(np.concatenate(found), "What the network returned")

    @property
    def is_shared(self) -> bool:
        """Whether several threads may ask the network at once. A module of the user's may not."""
        return isinstance(self.model, (str, PathLike))

    def _in_threads(self, pictures: list[tuple[Any, str]]) -> list[Array]:
        ask, part, sides = _onnx_at(self.model) if is_onnx(self.model) else _lite0()
        part = min(part, self.batch)
        parts = [tuple(pictures[i : i + part]) for i in range(0, len(pictures), part)]
        # Callers that started threads of their own need no others.
        workers = 1 if hasattr(_THREAD, "is_of_callers") else joblib.cpu_count()
        return threaded(lambda *some: ask(self._inputs(some, sides)), parts, workers)

    def _inputs(
        self, pictures: Sequence[tuple[Any, str]], sides: tuple[int, ...] | None = None
    ) -> Array:
        """The network's input for pictures, float32 (n, 3, h, w); sides : h and w."""
        return np.stack([self._input(*each, sides or (self.size, self.size)) for each in pictures])

    def _input(self, picture: Any, name: str, sides: tuple[int, ...]) -> Array:
        """The network's input for a picture, float32 (3, h, w)."""
        Image = optional("PIL.Image", "images")
        image = Image.fromarray(pixels(picture, name, "RGB"))
        w, h = image.size
        side = min(w, h) * self.crop
        box = ((w - side) / 2, (h - side) / 2, (w + side) / 2, (h + side) / 2)
        small = image.resize(sides[::-1], Image.Resampling.BICUBIC, box)
        scaled = (np.asarray(small) / 255 - np.asarray(self.mean)) / np.asarray(self.std)
        return np.asarray(np.moveaxis(scaled, 2, 0), dtype=np.float32)

    def _columns(self) -> int:
        if isinstance(self.model, str) and self.model == "efficientnet-lite0":
            return WIDTH
        raise InvalidInput("How many numbers this model gives shows when it is asked: transform.")

    def _check(self) -> None:
        if not isinstance(self.model, (str, PathLike)):
            # Where torch was not imported, nothing can be a module of it.
            torch = sys.modules.get("torch")
            if torch is None or not isinstance(self.model, torch.nn.Module):
                what = "Give a network, the path of an .onnx file, or a name."
                raise InvalidType(f"model is {a_type(self.model)}. {what}")
        elif not is_onnx(self.model):
            choice("model", self.model, NAMES)
        whole_number("size", self.size, 1)
        whole_number("batch", self.batch, 1)
        number("crop", self.crop, "(0, 1]")
        for name, interval in ("mean", "(-inf, inf)"), ("std", "(0, inf)"):
            value = getattr(self, name)
            three = isinstance(value, (Sequence, np.ndarray)) and len(value) == 3
            for each in value if three else [value]:
                number(name, each, interval, "Or give three: for red, green and blue.")


def is_onnx(model: Any) -> bool:
    """Whether a model is the path of an .onnx file."""
    return isinstance(model, (str, PathLike)) and os.fspath(model).endswith(".onnx")


# -- threads -------------------------------------------------------------------------------------


# In threads that callers have started: `by_callers`.
_THREAD = local()


def by_callers() -> None:
    """Say of this thread that callers have started several: networks add no others to them."""
    _THREAD.is_of_callers = True


# -- networks ------------------------------------------------------------------------------------


def _asked(network: Any, batch: Array) -> Array:
    """Outputs of a torch module for float32 (n, 3, h, w), maps being averaged."""
    torch = sys.modules["torch"]
    device = next((parameter.device for parameter in network.parameters()), "cpu")
    with torch.inference_mode():
        vectors = network(torch.from_numpy(batch).to(device))
        vectors = vectors.mean(dim=(2, 3)) if vectors.ndim == 4 else vectors
        return np.asarray(vectors.cpu().numpy())


@contextmanager
def _evaluating(network: Any) -> Iterator[None]:
    """A torch module in evaluation mode, and then in its former mode."""
    modes = [(module, module.training) for module in network.modules()]
    try:
        network.eval()
        yield
    finally:
        for module, training in modes:
            module.training = training


# A network: gives vectors of float32 (n, 3, h, w), maps being averaged; the number of pictures that
# it takes at once; h and w of its pictures, or None for any.
_Network = tuple[Callable[[Array], Array], int, tuple[int, ...] | None]


@cache
def _lite0() -> _Network:
    """EfficientNet-Lite0 without its last layer, the classes of ImageNet."""
    runtime = optional("onnxruntime", EXTRA)
    model = as_onnx(efficientnet_lite0()).SerializeToString()
    session = runtime.InferenceSession(model, _alone(runtime), providers=_PROVIDERS)
    return lambda batch: np.asarray(session.run(None, {"pictures": batch})[0]), _PART, None


def _alone(runtime: Any) -> Any:
    """Options of a network that computes in the thread that asks it, and no other."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return options


def _onnx_at(path: str | PathLike[str]) -> _Network:
    """The network in an .onnx file, loaded once for each version of the file."""
    try:
        stamp = os.stat(path)
    except OSError as error:
        problem = f"model={os.fspath(path)!r} cannot be read: {error.strerror}."
        raise InvalidInput(f"{problem} Check the path.") from error
    return _onnx_network(os.fspath(path), stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=2)
def _onnx_network(path: str, _changed: int, _size: int) -> _Network:
    """The network in this version of an .onnx file."""
    runtime = optional("onnxruntime", "onnx")
    try:
        session = runtime.InferenceSession(path, _alone(runtime), providers=_PROVIDERS)
    # The classes of its errors have no public name.
    except Exception as error:
        why = str(error).splitlines()[0]
        raise InvalidInput(f"model={path!r} cannot be loaded as ONNX: {why}.") from error
    inputs = session.get_inputs()
    shape = list(inputs[0].shape)
    channels = [i for i in (1, 3) if len(shape) == 4 and shape[i] == 3]
    if len(inputs) != 1 or not channels or inputs[0].type != "tensor(float)":
        got = ", ".join(f"{each.type} {each.shape}" for each in inputs)
        raise InvalidInput(
            f"model={path!r} takes {got}. Give a network with one input, tensor(float) of "
            f"shape (n, 3, h, w) or (n, h, w, 3)."
        )
    last = channels[0] == 3
    several, *sides = [shape[i] for i in ((0, 1, 2) if last else (0, 2, 3))]

    def ask(batch: Array) -> Array:
        n = len(batch)
        if isinstance(several, int) and n < several:
            batch = np.concatenate([batch, np.zeros((several - n, *batch.shape[1:]), np.float32)])
        given = np.ascontiguousarray(np.moveaxis(batch, 1, 3)) if last else batch
        vectors = np.asarray(session.run(None, {inputs[0].name: given})[0])[:n]
        return vectors.mean(axis=(1, 2) if last else (2, 3)) if vectors.ndim == 4 else vectors

    fixed = all(isinstance(side, int) for side in sides)
    return ask, several if isinstance(several, int) else _PART, tuple(sides) if fixed else None


def _vectors(X: Any, what: str) -> Array:
    """X as finite float64 (n, d)."""
    refuse_masked(what, X)
    vectors = np.asarray(X, dtype=float)
    if vectors.ndim != 2:
        raise InvalidInput(f"{what} has shape {vectors.shape}, but must be (n, d).")
    if not np.isfinite(vectors).all():
        raise InvalidInput(f"{what} has NaN or infinity among its values.")
    return vectors
