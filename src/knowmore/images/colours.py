"""Colour spaces: what red, green and blue are turned into before they are described.

"rgb" : as they are
"opponent" : red against green, yellow against blue, intensity (van de Sande, Gevers, Snoek 2010)
"rg" : r = R / (R + G + B) and g = G / (R + G + B), which do not change with the light's strength
"hsv" : hue, saturation and value

Black has no colour: its r and g are 1/3, its hue and saturation 0.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from knowmore._base import Array, optional

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
