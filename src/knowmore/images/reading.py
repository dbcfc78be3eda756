"""Pictures as arrays of bytes, from files, bytes, arrays or Pillow's images.

A picture is a path, the bytes of an encoded file, anything whose read() returns such bytes, a PIL
image, or an array: grey (h, w), RGB (h, w, 3) or RGBA (h, w, 4), of uint8 or uint16, or of floats
in [0, 1]. All take one way, through Pillow's conversions, so that the same picture gives the same
numbers in every form.

The formats that are read are BMP, GIF, JPEG, PNG, PPM (with PBM, PGM and PNM), TIFF and WebP, by
content and not by name. Pillow knows forty more, some of which it passes to other programs: they
are never tried.

Pictures are turned upright by their EXIF orientation, as viewers show them. Transparent pictures
are laid on white. Of several frames the first is taken. Files of more pixels than Pillow considers
safe (PIL.Image.MAX_IMAGE_PIXELS) are refused before they are decoded.

Red, green and blue are turned into a colour space before they are described:

"rgb" : as they are
"opponent" : red against green, yellow against blue, intensity (van de Sande, Gevers, Snoek 2010)
"rg" : r = R / (R + G + B) and g = G / (R + G + B), which do not change with the light's strength
"hsv" : hue, saturation and value

Black has no colour: its r and g are 1/3, its hue and saturation 0.
"""

from __future__ import annotations

import io
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from knowmore._base import Array, Unfitted, a_type, optional
from knowmore.errors import InvalidInput, InvalidType, KnowmoreError, TooManyPixels
from knowmore.images.sources import contents

T = TypeVar("T")

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
_ENCODED = (bytes, bytearray, memoryview)
# Modes of grey pictures, and modes whose pixels can be averaged without conversion.
_GREY = ("1", "L", "I;16", "I;16B", "I;16L", "I;16N")
_BLENDING = ("L", "RGB", "RGBA", "CMYK", "YCbCr")
# The whole process shares the warning filters.
_OPENING = Lock()

Space = Literal["rgb", "opponent", "rg", "hsv"]

# Rows: red-green, yellow-blue, intensity.
OPPONENT = np.array([[1, -1, 0], [1, 1, -2], [1, 1, 1]]) / np.sqrt([[2], [6], [3]])
# The least and the largest value of each channel.
RANGES: dict[Space, Array] = {
    "rgb": np.array([[0, 0, 0], [1, 1, 1]], dtype=float),
    "opponent": np.array(
        [np.minimum(OPPONENT, 0).sum(axis=1), np.maximum(OPPONENT, 0).sum(axis=1)]
    ),
    "rg": np.array([[0, 0], [1, 1]], dtype=float),
    "hsv": np.array([[0, 0, 0], [1, 1, 1]], dtype=float),
}


class Transformer(TransformerMixin, BaseEstimator, ABC):
    """A transformer of pictures, or of what was found in them: X is not a table of numbers."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters. There is nothing to learn; X and y are ignored."""
        self._check()
        return self

    @abstractmethod
    def _check(self) -> None:
        """Raise InvalidInput for parameters that cannot be used."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        # Only a transformer that learns overrides fit.
        tags.requires_fit = type(self).fit is not Transformer.fit
        return tags


def fitted(transformer: Transformer, name: str) -> Any:
    """The attribute of that name, which fit sets."""
    if not hasattr(transformer, name):
        raise Unfitted(f"This {type(transformer).__name__} has no words yet. Call fit first.")
    return getattr(transformer, name)


class VectorTransformer(Transformer):
    """A transformer to vectors, (n, D), whose columns have names."""

    _prefix: ClassVar[str]

    @abstractmethod
    def _columns(self) -> int:
        """The length of a vector."""

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns: the kind of the features, and a number. The input has no names."""
        self._check()
        return np.array([f"{self._prefix}{i}" for i in range(self._columns())], dtype=object)


def threaded(
    function: Callable[..., T], arguments: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> list[T]:
    """function(*each) of all arguments, in order, on `n_jobs` threads.

    Threads suffice: NumPy and OpenCV release the interpreter while they compute. They are joblib's
    own: scikit-learn's wrapper swaps the warning filters, which all threads share.
    """
    tasks = (delayed(function)(*each) for each in arguments)
    return list(Parallel(n_jobs=n_jobs, prefer="threads")(tasks))


def named(pictures: Any) -> list[tuple[Any, str]]:
    """Each picture with a name for errors; raises an error if `pictures` is a single one."""
    image = optional("PIL.Image", "images").Image
    one = isinstance(pictures, (str, PathLike, *_ENCODED, image)) or hasattr(pictures, "read")
    if isinstance(pictures, np.ndarray) and pictures.dtype != object:
        # (h, w, 3) may be one picture in colour or h very narrow ones in grey. Nobody has those.
        one = pictures.ndim < 3 or (pictures.ndim == 3 and pictures.shape[2] <= 4)
    if one or not isinstance(pictures, Iterable):
        got = f"A list of pictures is needed, but {a_type(pictures)} was given."
        raise InvalidType(f"{got} Give [picture], or an array (n, h, w) or (n, h, w, 3).")
    found = []
    for i, each in enumerate(pictures):
        name = fspath(each) if isinstance(each, (str, PathLike)) else getattr(each, "name", None)
        suffix = f" ({name!r})" if isinstance(name, (str, bytes)) else ""
        found.append((each, f"Picture {i}{suffix}"))
    if not found:
        raise InvalidInput("No picture was given: the list of pictures is empty.")
    return found


def pixels(picture: Any, name: str, mode: Literal["L", "RGB"]) -> Array:
    """The picture as uint8: grey (h, w) by the luma of ITU-R 601, or red, green and blue (h, w, 3).

    name : of the picture, for errors
    """
    Image = optional("PIL.Image", "images")
    if isinstance(picture, np.ndarray):
        array = _eight_bits(picture, name)
        if array.ndim == 2 and mode == "L":
            return array
        picture = Image.fromarray(array)
    with _explained(name):
        if not isinstance(picture, Image.Image):
            picture = _opened(encoded(picture, name), name)
        return np.asarray(_converted(picture, name, mode))


def in_space(rgb: Array, space: Space) -> Array:
    """The channels of a picture, uint8 (h, w, 3), in a colour space: float32 (h, w, c).

    >>> in_space(np.array([[[20, 60, 0]]], dtype=np.uint8), "rg")
    array([[[0.25, 0.75]]], dtype=float32)
    """
    if space == "opponent":
        return np.asarray((rgb @ (OPPONENT.T / 255)).astype(np.float32))
    scaled = rgb / np.float32(255)
    if space == "rgb":
        return np.asarray(scaled)
    if space == "rg":
        total = rgb.sum(axis=2, keepdims=True, dtype=np.float32)
        parts = rgb[:, :, :2] / np.maximum(total, 1)
        return np.where(total > 0, parts, np.float32(1 / 3))
    cv2 = optional("cv2", "images")
    hsv = np.array(cv2.cvtColor(scaled, cv2.COLOR_RGB2HSV))
    # OpenCV gives hue in degrees.
    hsv[:, :, 0] = hsv[:, :, 0] / 360 % 1
    return hsv


def encoded(picture: Any, name: str) -> bytes:
    """The bytes of the file behind a path, bytes, or an object with read()."""
    found = picture
    with _explained(name):
        if isinstance(picture, (str, PathLike)):
            found = contents(Path(picture), name)
        elif hasattr(picture, "read"):
            found = picture.read()
    if not isinstance(found, _ENCODED):
        known = "a path, bytes, or an object whose read() gives bytes"
        raise InvalidType(f"{name} is {a_type(picture)}. Give {known}.")
    return bytes(found)


def check_pixels(file: bytes, name: str) -> None:
    """Raise TooManyPixels for a picture that is too large, and InvalidInput for what is none."""
    with _explained(name), _opened(file, name):
        pass


def small(file: bytes, name: str, longest: int) -> Array:
    """An encoded picture, uint8 (h, w) if it is grey and else (h, w, 3), reduced to `longest`.

    JPEG files are reduced while they are decoded, so that even huge ones take little memory.
    """
    with _explained(name), _opened(file, name, longest) as image:
        mode = "L" if image.mode in _GREY else "RGB"
        # A colour that stands for transparency must be found before pixels are averaged.
        if image.mode in _BLENDING and "transparency" not in image.info:
            image.thumbnail((longest, longest), reducing_gap=2.0)
        image = _converted(image, name, mode)
        image.thumbnail((longest, longest), reducing_gap=2.0)
        return np.asarray(image)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn any failure with one picture into an error that names the picture."""
    try:
        yield
    except KnowmoreError:
        raise
    # Damaged files make the decoders raise anything: KeyError, struct.error, ZeroDivisionError, ...
    except Exception as error:
        bomb = optional("PIL.Image", "images").DecompressionBombError
        kind = TooManyPixels if isinstance(error, bomb) else InvalidInput
        raise kind(f"{name} {_problem(error)}") from error


def _problem(error: Exception) -> str:
    pil, image = (optional(library, "images") for library in ("PIL", "PIL.Image"))
    if isinstance(error, FileNotFoundError):
        return "does not exist. Check the path."
    if isinstance(error, MemoryError):
        return "cannot be read: there is not enough memory to decode it. Reduce it first."
    if isinstance(error, image.DecompressionBombError):
        # Pillow itself refuses only pictures of twice as many pixels.
        return f"has more than {2 * image.MAX_IMAGE_PIXELS:,} pixels. Reduce it first."
    if isinstance(error, pil.UnidentifiedImageError):
        formats = ", ".join(FORMATS)
        return f"cannot be read: it is not a picture in {formats}. Leave it out, or convert it."
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    return f"cannot be read: {why}. It may be cut off or damaged: leave it out, or fetch it again."


def _opened(file: bytes, name: str, longest: int | None = None) -> Any:
    """The picture in the file, not yet decoded; one with too many pixels is refused."""
    Image = optional("PIL.Image", "images")
    with _OPENING, warnings.catch_warnings():
        # Where Pillow only warns, we raise below.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        image = Image.open(io.BytesIO(file), formats=FORMATS)
    if longest is not None:
        image.draft(None, (2 * longest, 2 * longest))
    most = Image.MAX_IMAGE_PIXELS or np.inf
    if image.width * image.height > most:
        size = f"{image.width} x {image.height}"
        raise TooManyPixels(f"{name} has {size} pixels, more than the {most:,} allowed. Reduce it.")
    return image


def _converted(image: Any, name: str, mode: str) -> Any:
    """A PIL image turned upright, opaque, with eight bits, in `mode`."""
    if 0 in image.size:
        raise InvalidInput(f"{name} is empty: it has {image.width} x {image.height} pixels.")
    image = optional("PIL.ImageOps", "images").exif_transpose(image)
    if image.mode.startswith("I;16"):
        image = optional("PIL.Image", "images").fromarray(_eight_bits(np.asarray(image), name))
    if image.mode in ("I", "F"):
        raise InvalidInput(f"{name} has mode {image.mode!r}, of unknown range. Scale it to [0, 1].")
    if image.has_transparency_data:
        white = optional("PIL.Image", "images").new("RGBA", image.size, "white")
        white.alpha_composite(image.convert("RGBA"))
        image = white
    return image if image.mode == mode else image.convert(mode)


def _eight_bits(array: Array, name: str) -> Array:
    """An array of pixels as uint8, grey or with three or four channels."""
    refuse_masked(name, array)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (3, 4)):
        shapes = "grey (h, w), RGB (h, w, 3) or RGBA (h, w, 4)"
        raise InvalidInput(f"{name} has shape {array.shape}, but must be {shapes}.")
    if array.size == 0:
        raise InvalidInput(f"{name} is empty: it has shape {array.shape}.")
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.uint16:
        return np.asarray(np.rint(array / 257), dtype=np.uint8)
    if array.dtype.kind != "f":
        raise InvalidInput(f"{name} is of {array.dtype}. Give uint8, uint16 or floats in [0, 1].")
    if not (array.min() >= 0 and array.max() <= 1):
        got = f"{name} has values from {array.min():.6g} to {array.max():.6g}"
        raise InvalidInput(f"{got}, but floats must lie in [0, 1]. Scale them, or give uint8.")
    return np.asarray(np.rint(array * 255), dtype=np.uint8)


def refuse_masked(name: str, array: Any) -> None:
    """Raise InvalidInput for a masked array: as an array, its masked values would count."""
    if isinstance(array, np.ma.MaskedArray):
        raise InvalidInput(f"{name} is a masked array. Fill it first: array.filled(value).")
