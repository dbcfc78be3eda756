"""A picture gives the same pixels however it comes, and a bad one is named."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest

from knowmore import KnowmoreError
from knowmore.images import PHOG, DenseSIFT
from knowmore.images.reading import colour, grey, of_each

Image = pytest.importorskip("PIL.Image", reason="needs the extra images")

RGB = np.random.default_rng(0).integers(0, 256, (40, 56, 3), dtype=np.uint8)
GREY = np.asarray(Image.fromarray(RGB).convert("L"))


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
    names = of_each(lambda picture, name: (name, picture.shape), stack)
    assert names == [("Picture 0", RGB.shape), ("Picture 1", RGB.shape)]


JPEG = encoded(RGB, "JPEG")

BAD = {
    "no picture": (b"not a picture", ValueError, "Picture 1 cannot be read: it is no picture"),
    "no bytes": (b"", ValueError, "Picture 1 cannot be read: it is no picture"),
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
        "Picture 1 has values from 255 to 255, but floats must lie in [0, 1]. Divide by",
    ),
    "NaN": (np.full((20, 20), np.nan), ValueError, "Picture 1 has values from nan to nan, but"),
    "integers": (
        np.zeros((20, 20), int),
        ValueError,
        "Picture 1 is of int64, whose range is not known. Give uint8, uint16, or floats in [0, 1].",
    ),
    "32 bits": (
        Image.new("F", (20, 20)),
        ValueError,
        "Picture 1 has the mode 'F', whose range is not known. Scale it to floats in [0, 1]",
    ),
    "a number": (3, TypeError, "Picture 1 is a int. A picture is a path, encoded bytes, a PIL"),
    "too small": (
        np.zeros((20, 15)),
        ValueError,
        "Picture 1 has 15 x 20 pixels: it is smaller than a patch of 16 x 16. Enlarge it, or",
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
    with pytest.raises(TypeError, match=r"One picture was given, but a list of them is needed"):
        of_each(grey, one)


def test_no_pictures():
    with pytest.raises(ValueError, match=r"No picture was given: the list of pictures is empty"):
        of_each(grey, [])
    with pytest.raises(TypeError, match=r"A list of pictures is needed, but a int was given"):
        of_each(grey, 3)
