"""Self-similarities: which parts of a patch look like its centre, in any colour or texture.

Local self-similarities of Shechtman and Irani (2007). The small square at the centre of a patch is
compared with those around it: at displacement s, S(s) = exp(-D(s) / max(v, noise)), where D is the
sum of squared differences and v the largest D at a displacement of at most one pixel along each
axis, so that a sharp edge may be as unlike as it is when moved by one. Displacements belong to 80
bins, twenty angles and four radii that grow geometrically; the largest S of each bin counts, and
the 80 numbers are stretched to reach from zero to one.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np

from knowmore._base import Array, optional, whole_number
from knowmore.errors import InvalidInput
from knowmore.images.local import LocalDescriptor

ANGLES, RADII = 20, 4
# The difference of two grey values that may be noise, in [0, 1].
NOISE = 4 / 255
# Bytes take a quarter of the memory of floats.
_UNIT = 255


@final
@dataclass(eq=False, repr=False)
class SelfSimilarity(LocalDescriptor):
    """Local self-similarities on a grid: pictures of any size to one `Descriptors` each.

    Parameters
    ----------
    patch : the side of a patch in pixels, odd
    step : the distance of neighbouring patches in pixels; the grid is centred in the picture
    scales : the picture is described at each of these scales; 1 is its own size
    longest : pictures with a longer side than this are first reduced to it; None keeps their size
    n_jobs : threads; None is one, -1 as many as there are cores
    inner : the side of the squares that are compared, in pixels, odd

    The vectors are uint8, 255 for one. Where all is equally alike they are zero.

    Examples
    --------
    >>> picture = np.random.default_rng(0).random((64, 48))
    >>> SelfSimilarity().transform([picture])
    [Descriptors(3 of 80 numbers)]
    """

    patch: int = 41
    _: KW_ONLY
    inner: int = 5

    @property
    def width(self) -> int:
        """The length of a descriptor."""
        return ANGLES * RADII

    def _vectors(self, channels: Array, tops: Array, lefts: Array) -> Array:
        cv2 = optional("cv2", "images")
        image = channels[:, :, 0]
        reach = (self.patch - self.inner) // 2
        h, w = image.shape[0] - 2 * reach, image.shape[1] - 2 * reach
        here = image[reach : reach + h, reach : reach + w]
        # The squares of the patches, among the squares that lie `reach` from the border.
        centre = np.ix_(tops + self.inner // 2, lefts + self.inner // 2)
        nearest = np.full((ANGLES * RADII, len(tops), len(lefts)), np.inf, dtype=np.float32)
        jitter = np.zeros(nearest.shape[1:], dtype=np.float32)
        for y, x, bin_ in displacements(reach):
            there = image[reach + y : reach + y + h, reach + x : reach + x + w]
            squares = np.square(here - there)
            size = (self.inner, self.inner)
            sums = cv2.boxFilter(squares, cv2.CV_32F, size, normalize=False)[centre]
            np.minimum(nearest[bin_], sums, out=nearest[bin_])
            if max(abs(y), abs(x)) == 1:
                np.maximum(jitter, sums, out=jitter)
        unlike = np.maximum(jitter, self.inner**2 * NOISE**2)
        return _stretched(np.exp(-np.maximum(nearest, 0) / unlike).reshape(len(nearest), -1).T)

    def _check(self) -> None:
        super()._check()
        whole_number("inner", self.inner, 1)
        if self.inner % 2 == 0 or self.patch % 2 == 0 or self.patch < self.inner + 4:
            sides = f"patch={self.patch} and inner={self.inner}"
            raise InvalidInput(f"{sides} must be odd, and patch larger than inner by 4 or more.")


def displacements(reach: int) -> list[tuple[int, int, int]]:
    """All (y, x, bin) with a distance from one to `reach`; bins by radius, then by angle."""
    y, x = np.indices((2 * reach + 1,) * 2) - reach
    distance = np.hypot(y, x)
    near = (distance >= 1) & (distance <= reach)
    y, x, distance = y[near], x[near], distance[near]
    # A displacement of exactly `reach` belongs to the last ring.
    ring = np.minimum((np.log(distance) / np.log(reach) * RADII).astype(int), RADII - 1)
    angle = np.floor(np.arctan2(-y, x) / (2 * np.pi) * ANGLES + 0.5).astype(int) % ANGLES
    return list(zip(y.tolist(), x.tolist(), (ring * ANGLES + angle).tolist(), strict=True))


def _stretched(S: Array) -> Array:
    """Rows (k, 80) stretched to reach from zero to one, as uint8; those without contrast zero."""
    low, high = S.min(axis=1, keepdims=True), S.max(axis=1, keepdims=True)
    stretched = (S - low) / np.where(high > low, high - low, 1)
    return np.asarray(np.rint(stretched * _UNIT), dtype=np.uint8)
