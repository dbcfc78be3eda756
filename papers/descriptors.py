"""Descriptors of pictures that only the experiments need.

`DenseSURF` sums g_x, |g_x|, g_y and |g_y| in the cells of a patch (Bay, Tuytelaars and Van Gool
2006). It is one of the twelve kinds of features of `papers.n_plus_one`, and of its kinds of patches
the one that recognises least.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np

from knowmore._base import number
from knowmore.errors import InvalidInput
from knowmore.images.local import LocalDescriptor
from knowmore.images.patches import CELLS, cell_sums, gradient
from papers.arrays import Array


@final
@dataclass(eq=False, repr=False)
class DenseSURF(LocalDescriptor):
    """Half as many numbers as `DenseSIFT`: 64 sums of the gradient and of its size.

    Parameters
    ----------
    patch, step, scales, longest, n_jobs, contrast : as for `DenseSIFT`

    Each of 4 x 4 cells has the sums of g_x, |g_x|, g_y and |g_y|; the vectors are float32, of
    length one where there is contrast. The gradient and the weights are those of `DenseSIFT`, not
    the box filters that Bay et al. use for speed.

    Examples
    --------
    >>> picture = np.random.default_rng(0).random((64, 48))
    >>> DenseSURF().transform([picture])
    [Descriptors(35 of 64 numbers)]
    """

    _: KW_ONLY
    contrast: float = 1.0

    @property
    def width(self) -> int:
        """The length of a descriptor."""
        return CELLS**2 * 4

    def _vectors(self, channels: Array, tops: Array, lefts: Array) -> Array:
        gx, gy = gradient(channels[:, :, 0])
        d = cell_sums(np.dstack([gx, abs(gx), gy, abs(gy)]), self.patch, tops, lefts)
        length = np.linalg.norm(d, axis=1, keepdims=True)
        return np.asarray(d / np.maximum(length, np.float32(self.contrast)))

    def _check(self) -> None:
        super()._check()
        number("contrast", self.contrast, "(0, inf)")
        if self.patch % CELLS:
            raise InvalidInput(f"patch={self.patch} must be a multiple of {CELLS}.")
