"""Pictures as arrays of bytes, whatever they come as.

A picture is a path, the bytes of an encoded file, anything whose read() gives them, a PIL image,
or an array: grey (h, w), RGB (h, w, 3) or RGBA (h, w, 4), of uint8 or uint16, or of floats in
[0, 1]. All go one way, through Pillow's conversions, so that the same picture gives the same
numbers however it comes.

Files are read in the forms BMP, GIF, JPEG, PNG, PPM (with PBM, PGM and PNM), TIFF and WebP, by
their content. Pillow knows forty more, some of which it hands to other programs: whatever a file is
called, they are not tried.

Pictures are turned upright as their EXIF orientation says, as every viewer shows them. What is
transparent is laid on white. Of several frames the first is taken. Files of more pixels than
Pillow deems safe (PIL.Image.MAX_IMAGE_PIXELS) are refused before they are unpacked.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from joblib import Parallel, delayed

from knowmore.arrays import Array
from knowmore.errors import InvalidInput, InvalidType, KnowmoreError
from knowmore.extras import optional
from knowmore.files import contents
from knowmore.images.settings import no_mask

_T = TypeVar("_T")

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
_ENCODED = (bytes, bytearray, memoryview)
# Modes of grey pictures, and modes whose pixels can be averaged as they are.
_GREY = ("1", "L", "I;16", "I;16B", "I;16L", "I;16N")
_BLENDING = ("L", "RGB", "RGBA", "CMYK", "YCbCr")
# Filters of warnings belong to the whole process.
_OPENING = Lock()
_SHAPES = "grey (h, w), RGB (h, w, 3) or RGBA (h, w, 4)"


@runtime_checkable
class Readable(Protocol):
    """A handle on an encoded picture. Where it has a `name`, complaints tell it."""

    def read(self) -> bytes:
        """The bytes."""


def grey(picture: Any, name: str) -> Array:
    """The picture in grey, uint8 (h, w), by the luma of ITU-R 601. `name` is for complaints."""
    return _pixels(picture, name, "L")


def colour(picture: Any, name: str) -> Array:
    """The picture in red, green and blue, uint8 (h, w, 3)."""
    return _pixels(picture, name, "RGB")


def encoded(picture: Any, name: str) -> bytes:
    """The bytes of the file that a path, bytes or a handle stand for."""
    if isinstance(picture, _ENCODED):
        return bytes(picture)
    with _told(name):
        if isinstance(picture, (str, PathLike)):
            return contents(Path(picture), name)
        found = picture.read() if isinstance(picture, Readable) else picture
    if not isinstance(found, _ENCODED):
        raise InvalidType(
            f"{name} is a {type(picture).__name__}, but a file is needed: a path, encoded bytes, "
            f"or anything whose read() gives bytes."
        )
    return bytes(found)


def small(file: bytes, name: str, longest: int) -> Array:
    """An encoded picture, uint8 (h, w) if it is grey and else (h, w, 3), reduced to `longest`.

    JPEG files are reduced while they are unpacked, so that even huge ones take little memory.
    """
    with _told(name), _opened(io.BytesIO(file)) as image:
        image.draft(None, (2 * longest, 2 * longest))
        _refuse_huge(image, name)
        mode = "L" if image.mode in _GREY else "RGB"
        # A colour that stands for transparency must be found before pixels are averaged.
        if image.mode in _BLENDING and "transparency" not in image.info:
            image.thumbnail((longest, longest), reducing_gap=2.0)
        image = _converted(image, name, mode)
        image.thumbnail((longest, longest), reducing_gap=2.0)
        return np.asarray(image)


def of_each(
    function: Callable[[Any, str], _T], pictures: Iterable[Any], n_jobs: int | None = None
) -> list[_T]:
    """function(picture, name) of every picture, in order, on `n_jobs` threads.

    Threads suffice: NumPy and OpenCV let go of the interpreter while they compute. They are
    joblib's own: scikit-learn's wrapper exchanges the warning filters, which threads share.
    """
    tasks = (delayed(function)(picture, name) for picture, name in named(pictures))
    return list(Parallel(n_jobs=n_jobs, prefer="threads")(tasks))


def named(pictures: Any) -> list[tuple[Any, str]]:
    """Each picture with a name for it, or an error if `pictures` is but one."""
    image = optional("PIL.Image", "images").Image
    one = isinstance(pictures, (str, PathLike, *_ENCODED, image, Readable))
    if isinstance(pictures, np.ndarray) and pictures.dtype != object:
        # (h, w, 3) may be one picture in colour or h very narrow ones in grey. Nobody has those.
        one = pictures.ndim < 3 or (pictures.ndim == 3 and pictures.shape[2] <= 4)
    if one:
        raise InvalidType(
            "One picture was given, but a list of them is needed. Give [picture], or an array "
            "(n, h, w) or (n, h, w, 3) of n pictures."
        )
    if not isinstance(pictures, Iterable):
        raise InvalidType(
            f"A list of pictures is needed, but a {type(pictures).__name__} was given."
        )
    pictures = list(pictures)
    if not pictures:
        raise InvalidInput("No picture was given: the list of pictures is empty.")
    return [(each, _name(each, i)) for i, each in enumerate(pictures)]


def _name(picture: Any, index: int) -> str:
    path = picture if isinstance(picture, (str, PathLike)) else None
    known = fspath(path) if path is not None else getattr(picture, "name", None)
    where = f" ({known!r})" if isinstance(known, (str, bytes)) else ""
    return f"Picture {index}{where}"


def _pixels(picture: Any, name: str, mode: str) -> Array:
    Image = optional("PIL.Image", "images")
    if isinstance(picture, (str, PathLike, Readable, *_ENCODED)):
        with _told(name), _opened(io.BytesIO(encoded(picture, name))) as opened:
            _refuse_huge(opened, name)
            return np.asarray(_converted(opened, name, mode))
    if isinstance(picture, Image.Image):
        with _told(name):
            return np.asarray(_converted(picture, name, mode))
    if isinstance(picture, np.ndarray):
        array = _eight_bits(picture, name)
        if array.ndim == 2 and mode == "L":
            return array
        return np.asarray(_converted(Image.fromarray(array), name, mode))
    raise InvalidType(
        f"{name} is a {type(picture).__name__}. A picture is a path, encoded bytes, a PIL image "
        f"or an array: {_SHAPES}."
    )


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Whatever goes wrong with one file, in our words."""
    pil, image = (optional(library, "images") for library in ("PIL", "PIL.Image"))
    try:
        yield
    except KnowmoreError:
        raise
    except pil.UnidentifiedImageError as error:
        raise InvalidInput(
            f"{name} cannot be read: it is no picture in one of the forms that are read, "
            f"{', '.join(FORMATS)}. Leave it out, or convert it."
        ) from error
    except image.DecompressionBombError as error:
        # Pillow names the size only in its words.
        (pixels, *_) = re.findall(r"\d+", str(error)) or [2 * image.MAX_IMAGE_PIXELS]
        raise _too_large(name, f"{int(pixels):,}") from error
    except FileNotFoundError as error:
        raise InvalidInput(f"{name} does not exist. Check the path.") from error
    except MemoryError as error:
        raise InvalidInput(
            f"{name} cannot be read: there is not enough memory to unpack it. Reduce it first."
        ) from error
    # Damaged files make the decoders raise anything: KeyError, struct.error, ZeroDivisionError, ...
    except Exception as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidInput(
            f"{name} cannot be read: {why}. The file may be empty, cut off, damaged, or no "
            f"picture; leave it out or fetch it again."
        ) from error


def _opened(file: io.BytesIO) -> Any:
    """The picture in the file, as yet packed. `_refuse_huge` says what Pillow only warns of."""
    Image = optional("PIL.Image", "images")
    with _OPENING, warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        return Image.open(file, formats=FORMATS)


def _refuse_huge(image: Any, name: str) -> None:
    most = optional("PIL.Image", "images").MAX_IMAGE_PIXELS
    if most is not None and image.width * image.height > most:
        raise _too_large(name, f"{image.width} x {image.height}")


def _too_large(name: str, pixels: str) -> InvalidInput:
    most = optional("PIL.Image", "images").MAX_IMAGE_PIXELS
    return InvalidInput(
        f"{name} has {pixels} pixels, but no more than {most:,} are unpacked. Reduce it first."
    )


def _converted(image: Any, name: str, mode: str) -> Any:
    """A PIL image upright, opaque, with eight bits, in `mode`."""
    if 0 in image.size:
        raise InvalidInput(f"{name} is empty: it has {image.width} x {image.height} pixels.")
    image = optional("PIL.ImageOps", "images").exif_transpose(image)
    if image.mode.startswith("I;16"):
        image = optional("PIL.Image", "images").fromarray(_eight_bits(np.asarray(image), name))
    if image.mode in ("I", "F"):
        raise InvalidInput(
            f"{name} has the mode {image.mode!r}, whose range is not known. Scale it to floats in "
            f"[0, 1] and give it as an array."
        )
    if image.has_transparency_data:
        white = optional("PIL.Image", "images").new("RGBA", image.size, "white")
        white.alpha_composite(image.convert("RGBA"))
        image = white
    return image if image.mode == mode else image.convert(mode)


def _eight_bits(array: Array, name: str) -> Array:
    """An array of pixels as uint8, grey or with three or four channels."""
    no_mask(name, array)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (3, 4)):
        raise InvalidInput(f"{name} has shape {array.shape}, but must be {_SHAPES}.")
    if array.size == 0:
        raise InvalidInput(f"{name} is empty: it has shape {array.shape}.")
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.uint16:
        return np.asarray(np.rint(array / 257), dtype=np.uint8)
    if array.dtype.kind != "f":
        raise InvalidInput(
            f"{name} is of {array.dtype}, whose range is not known. Give uint8, uint16, or floats "
            f"in [0, 1]."
        )
    if not (array.min() >= 0 and array.max() <= 1):
        raise InvalidInput(
            f"{name} has values from {array.min():.6g} to {array.max():.6g}, but floats must lie "
            f"in [0, 1]. Divide by the largest possible value, or give uint8."
        )
    return np.asarray(np.rint(array * 255), dtype=np.uint8)
