"""A picture gives the same pixels however it comes, and a bad one is named."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from damage import mutants

from knowmore import KnowmoreError
from knowmore._base import a_type
from knowmore.errors import InvalidInput
from knowmore.images import PHOG, DenseSIFT, Embedding
from knowmore.images.reading import FORMATS, named, pixels, small

Image = pytest.importorskip("PIL.Image", reason="needs the extra images")

RGB = np.random.default_rng(0).integers(0, 256, (40, 56, 3), dtype=np.uint8)
GREY = np.asarray(Image.fromarray(RGB).convert("L"))


def grey(picture, name):
    return pixels(picture, name, "L")


def colour(picture, name):
    return pixels(picture, name, "RGB")


def encoded(array, form="PNG", **options):
    file = io.BytesIO()
    image = array if isinstance(array, Image.Image) else Image.fromarray(array)
    image.save(file, form, **options)
    return file.getvalue()


def luma(rgb):
    """ITU-R 601 in 16 bits, rounded."""
    return (rgb.astype(np.int64) @ [19595, 38470, 7471] + 2**15) >> 16


def with_alpha(rgb):
    return np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)])


def forms(tmp_path, array):
    path = tmp_path / "picture.png"
    path.write_bytes(encoded(array))
    yield "array", array
    yield "strided array", np.repeat(array, 2, axis=0)[::2]
    yield "floats", array / 255
    yield "float32", (array / 255).astype(np.float32)
    yield "uint16", array.astype(np.uint16) * 257
    yield "path", path
    yield "path as str", str(path)
    yield "bytes", path.read_bytes()
    yield "PIL", Image.fromarray(array)


def test_every_form_of_a_colour_picture_is_the_same(tmp_path):
    rgba = with_alpha(RGB)
    for form, picture in [*forms(tmp_path, RGB), *forms(tmp_path, rgba)]:
        np.testing.assert_array_equal(colour(picture, "it"), RGB, err_msg=form)
        np.testing.assert_array_equal(grey(picture, "it"), luma(RGB), err_msg=form)


def test_every_form_of_a_grey_picture_is_the_same(tmp_path):
    others = [("one channel", GREY[:, :, None]), ("grey in colour", np.dstack([GREY] * 3))]
    others += [("palette", Image.fromarray(GREY).convert("P"))]
    others += [("16 bits", encoded(GREY.astype(np.uint16) * 257))]
    for form, picture in [*forms(tmp_path, GREY), *others]:
        np.testing.assert_array_equal(grey(picture, "it"), GREY, err_msg=form)
        np.testing.assert_array_equal(colour(picture, "it"), np.dstack([GREY] * 3), err_msg=form)


@pytest.mark.parametrize("transformer", [DenseSIFT(), DenseSIFT(colour="opponent"), PHOG()])
def test_every_form_gives_the_same_features(tmp_path, transformer):
    pytest.importorskip("cv2", reason="needs the extra images")
    found = transformer.transform([picture for _, picture in forms(tmp_path, RGB)])
    vectors = [getattr(each, "vectors", each) for each in found]
    for each in vectors[1:]:
        np.testing.assert_array_equal(each, vectors[0])


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_upright(orientation):
    # As a camera stores it: the inverse of what a viewer does.
    names = "FLIP_LEFT_RIGHT ROTATE_180 FLIP_TOP_BOTTOM TRANSPOSE ROTATE_90 TRANSVERSE ROTATE_270"
    stored = Image.fromarray(GREY)
    if orientation > 1:
        stored = stored.transpose(Image.Transpose[names.split()[orientation - 2]])
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = encoded(stored, exif=exif)
    np.testing.assert_array_equal(grey(file, "it"), GREY)
    np.testing.assert_array_equal(grey(Image.open(io.BytesIO(file)), "it"), GREY)


def test_what_is_transparent_is_white():
    rgba = with_alpha(RGB)
    rgba[:10, :, 3] = 0
    seen = colour(rgba, "it")
    assert (seen[:10] == 255).all()
    np.testing.assert_array_equal(seen[10:], RGB[10:])
    np.testing.assert_array_equal(colour(encoded(rgba), "it"), seen)


def test_inputs_are_not_changed():
    for array in (RGB.copy(), RGB / 255):
        before = array.copy()
        DenseSIFT().transform([array])
        np.testing.assert_array_equal(array, before)
        assert array.flags.writeable


def test_a_stack_is_a_list_of_pictures():
    stack = np.stack([RGB, RGB[::-1]])
    names = [(name, picture.shape) for picture, name in named(stack)]
    assert names == [("Picture 0", RGB.shape), ("Picture 1", RGB.shape)]


JPEG = encoded(RGB, "JPEG")

BAD = {
    "no picture": (
        b"not a picture",
        ValueError,
        "Picture 1 cannot be read: it is not a picture in BMP",
    ),
    "no bytes": (b"", ValueError, "Picture 1 cannot be read: it is not a picture in BMP"),
    "cut off": (JPEG[: len(JPEG) // 2], ValueError, "Picture 1 cannot be read: image file is trun"),
    "a png cut off": (encoded(RGB)[:3000], ValueError, "Picture 1 cannot be read: "),
    "no file": ("/nowhere/a.jpg", ValueError, "Picture 1 ('/nowhere/a.jpg') does not exist."),
    "a folder": ("/", ValueError, "Picture 1 ('/') cannot be read: "),
    "no path": ("\0", ValueError, "Picture 1 ('\\x00') cannot be read: "),
    "empty array": (np.zeros((0, 5)), ValueError, "Picture 1 is empty: it has shape (0, 5)."),
    "empty image": (Image.new("L", (0, 4)), ValueError, "Picture 1 is empty: it has 0 x 4 pixels."),
    "one row": (np.zeros(5), ValueError, "Picture 1 has shape (5,), but must be grey (h, w), RGB"),
    "two channels": (np.zeros((9, 9, 2)), ValueError, "Picture 1 has shape (9, 9, 2), but must be"),
    "wide floats": (
        np.full((20, 20), 255.0),
        ValueError,
        "Picture 1 has values from 255 to 255, but floats must lie in [0, 1]. Scale them, or",
    ),
    "NaN": (np.full((20, 20), np.nan), ValueError, "Picture 1 has values from nan to nan, but"),
    "integers": (
        np.zeros((20, 20), int),
        ValueError,
        "Picture 1 is of int64. Give uint8, uint16 or floats in [0, 1].",
    ),
    "32 bits": (
        Image.new("F", (20, 20)),
        ValueError,
        "Picture 1 has mode 'F', of unknown range. Scale it to [0, 1].",
    ),
    "a number": (3, TypeError, "Picture 1 is an int. Give a path, bytes, or an object"),
    "too small": (
        np.zeros((20, 15)),
        ValueError,
        "Picture 1 has 15 x 20 pixels at scale 1, less than a patch of 16. Enlarge",
    ),
}


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_picture_is_named(bad, n_jobs):
    pytest.importorskip("cv2", reason="needs the extra images")
    picture, kind, words = BAD[bad]
    with pytest.raises(kind, match=re.escape(words)) as caught:
        DenseSIFT(n_jobs=n_jobs).transform([GREY, picture])
    assert isinstance(caught.value, KnowmoreError)


@pytest.mark.parametrize(
    "one", ["a.jpg", b"bytes", GREY, RGB, with_alpha(RGB), Image.fromarray(RGB)], ids=type
)
def test_one_picture_is_no_list(one):
    words = rf"A list of pictures is needed, but {a_type(one)} was given. Give \[picture\]"
    with pytest.raises(TypeError, match=words):
        named(one)


def test_no_pictures():
    with pytest.raises(ValueError, match=r"No picture was given: the list of pictures is empty"):
        named([])
    with pytest.raises(TypeError, match=r"A list of pictures is needed, but an int was given"):
        named(3)


# -- which files are read ------------------------------------------------------------------------

OTHERS = ["AVIF", "BLP", "DDS", "EPS", "ICNS", "ICO", "JPEG2000", "PCX", "SGI", "SPIDER", "TGA"]


@pytest.mark.parametrize("form", FORMATS)
def test_the_usual_forms_are_read(form):
    seen = colour(encoded(np.full((8, 8, 3), 80, np.uint8), form), "it")
    assert seen.shape == (8, 8, 3)
    assert abs(seen.astype(int) - 80).max() <= 4


@pytest.mark.parametrize("form", OTHERS)
def test_other_forms_are_not_even_tried(form, tmp_path):
    image = Image.new({"BLP": "P", "SPIDER": "F"}.get(form, "RGB"), (32, 32))
    path = tmp_path / "picture.jpg"
    try:
        path.write_bytes(encoded(image, form))
    except (KeyError, OSError) as error:
        pytest.skip(f"this Pillow does not write {form}: {error}")
    words = (
        "it cannot be read: it is not a picture in BMP, GIF, JPEG, PNG, PPM, TIFF, WEBP. Leave it "
        "out, or convert it."
    )
    for ask in lambda: colour(path, "it"), lambda: small(path.read_bytes(), "it", 100):
        with pytest.raises(InvalidInput, match=f"^{re.escape(words)}$"):
            ask()


def test_no_other_program_is_asked(tmp_path, monkeypatch):
    """Pillow hands EPS to Ghostscript, which it finds by its name."""
    (tmp_path / "gs").write_text(f"#!/bin/sh\ntouch {tmp_path / 'was_run'}\n")
    (tmp_path / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    path = tmp_path / "picture.jpg"
    path.write_bytes(encoded(Image.new("RGB", (32, 32)), "EPS"))
    with pytest.raises(
        InvalidInput, match="it is not a picture in BMP, GIF, JPEG, PNG, PPM, TIFF, WEBP"
    ):
        DenseSIFT().transform([path])
    assert not (tmp_path / "was_run").exists()


def sources():
    """Files of every form, mode and sort of compression."""
    rgb, grey_, exif = Image.fromarray(RGB), Image.fromarray(GREY), Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "a camera"
    yield "BMP", encoded(rgb, "BMP")
    yield "GIF", encoded(rgb, "GIF", save_all=True, append_images=[grey_], transparency=3)
    yield "JPEG", encoded(rgb, "JPEG", exif=exif, progressive=True, icc_profile=b"icc" * 50)
    yield "JPEG", encoded(rgb.convert("CMYK"), "JPEG")
    yield "PNG", encoded(rgb.convert("RGBA"), "PNG", exif=exif)
    yield "PNG", encoded(rgb.convert("P"), "PNG", transparency=b"\0\x80\xff")
    yield "PPM", encoded(rgb, "PPM")
    yield "PPM", b"P2 4 4 255 " + b"7 " * 16
    for compression in None, "tiff_lzw", "tiff_adobe_deflate", "jpeg", "packbits":
        yield "TIFF", encoded(rgb, "TIFF", compression=compression, exif=exif)
    yield "TIFF", encoded(GREY.astype(np.uint16) * 257, "TIFF")
    yield "WEBP", encoded(rgb.convert("RGBA"), "WEBP", exif=exif.tobytes())


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_damaged_files_are_refused_and_nothing_else(form):
    """A damaged file is still a picture, or is refused in words."""
    rng = np.random.default_rng(0)
    mine = [data for each, data in sources() if each == form]
    words = []
    for data in mine:
        for mutant in mutants(data, rng, 300 // len(mine)):
            for ask in lambda m=mutant: small(m, "it", 30), lambda m=mutant: grey(m, "it"):
                try:
                    assert ask().dtype == np.uint8
                except InvalidInput as error:
                    words.append(str(error))
    assert len(words) > 30
    assert all(each.startswith("it ") for each in words)


class Unreadable:
    """A handle whose read() fails."""

    def __init__(self, error):
        self.error = error

    def read(self):
        raise self.error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            ZeroDivisionError("division by zero"),
            "it cannot be read: division by zero. It may be cut",
        ),
        (NotImplementedError(), "it cannot be read: NotImplementedError. It may be cut off or"),
        (MemoryError(), "it cannot be read: there is not enough memory to decode it. Reduce it"),
        (RecursionError("too deep"), "it cannot be read: too deep. "),
    ],
)
def test_whatever_one_file_raises_is_reported(error, words):
    with pytest.raises(InvalidInput, match=f"^{re.escape(words)}"):
        grey(Unreadable(error), "it")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interrupts_pass_through(error):
    with pytest.raises(error):
        grey(Unreadable(error()), "it")


def test_files_too_large_for_a_picture_are_not_read(tmp_path):
    path = tmp_path / "large.png"
    with path.open("wb") as file:
        file.truncate(2**28 + 1)
    words = f"Picture 0 ({str(path)!r}) has 268,435,457 bytes, more than the 268,435,456 allowed."
    with pytest.raises(InvalidInput, match=f"^{re.escape(words)}"):
        PHOG().transform([path])


# -- masked arrays -------------------------------------------------------------------------------


@pytest.mark.parametrize("transformer", [DenseSIFT(), DenseSIFT(colour="opponent"), PHOG()])
@pytest.mark.parametrize("pixels", [GREY, RGB, GREY / 255])
def test_masked_pictures_are_refused(transformer, pixels):
    masked = np.ma.masked_array(pixels, mask=pixels > pixels.mean())
    words = "Picture 1 is a masked array. Fill it first: array.filled(value)."
    for pictures in [pixels, masked], np.ma.stack([masked, masked]):
        with pytest.raises(InvalidInput, match=re.escape(words).replace("1", "[01]")):
            transformer.transform(pictures)


def test_masked_vectors_are_refused():
    with pytest.raises(InvalidInput, match=r"^X is a masked array. Fill it first"):
        Embedding("precomputed").transform(np.ma.masked_array(np.ones((2, 3)), mask=np.eye(2, 3)))
