"""The type of all arrays."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
