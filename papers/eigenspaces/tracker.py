"""A tracker after Ross, Lim, Lin and Yang (2008): particles, judged by an eigenspace of patches.

A state is where the object may be: the x and y of its centre in pixels, the logarithm of its scale,
its angle, and the logarithm of its aspect ratio, both relative to the first box. Particles are
states. In each picture they are moved at random, the patch under each is cut out and brought to one
size, and the weight of a particle follows from how far its patch is from the eigenspace:

    log w = -|(I - P'P)(x - m)|^2 / s^2

with the mean m and the leading directions P of the patches that the memory holds. The object is
taken to be at the mean of the states by these weights, and that patch is learnt. Other than in the
paper the brightness of a patch does not count, only its differences; and of the paper's affine
maps those that leave angles right, and the aspect ratio, are enough here.
"""

from __future__ import annotations

import warnings
from typing import final

import numpy as np

from knowmore import Eigenspace, EigenspacePCA
from knowmore.errors import LostVariance
from papers.arrays import Array

# The sides of a patch, and how many leading directions describe it.
SIDE, DIRECTIONS = 24, 16
# Patches are learnt five at a time, as in the paper.
PORTION = 5
# The largest eigenspace of a memory that never forgets.
MOST = 50
# Standard deviations of the moves from one picture to the next. As in the paper, for smaller ones.
_MOVES = np.array([2.5, 2.5, 0.01, 0.02, 0.001])
# s^2; the paper's 0.25 is for patches of 32 x 32.
_SPREAD = 0.25 * (SIDE / 32) ** 2


@final
class Memory:
    """The object's appearance: an eigenspace that learns patches, and may forget them.

    window : number of latest patches held; None: all patches are kept, truncated to `MOST`
        directions
    until : number of patches after which learning stops
    """

    def __init__(self, window: int | None = None, until: int | None = None) -> None:
        self.window, self.until = window, until
        exact = window is not None or until is not None
        self.pca = EigenspacePCA(None if exact else MOST)
        self.held: list[Array] = []
        self._waiting: list[Array] = []

    def learn(self, patch: Array) -> None:
        """Take in one more patch (D,): the first at once, others by portions."""
        self._waiting.append(patch.astype(float))
        if self.held and len(self._waiting) < PORTION:
            return
        rows, self._waiting = self._waiting, []
        if self.until is not None and len(self.held) >= self.until:
            return
        self.pca.partial_fit(np.stack(rows))
        self.held += rows
        if self.window is not None and len(self.held) > self.window:
            self._forget(len(self.held) - self.window)

    def _forget(self, k: int) -> None:
        """Split off the oldest k patches."""
        with warnings.catch_warnings():
            # Pictures that come twice leave directions of next to no variance. They are no leading
            # ones.
            warnings.simplefilter("ignore", LostVariance)
            self.pca.forget(np.stack(self.held[:k]))
        self.held = self.held[k:]

    def distances(self, patches: Array) -> Array:
        """The squared distance (m,) of patches (m, D) to the leading directions."""
        d = patches - self.pca.mean_.astype(np.float32)
        z = d @ self.pca.components_[:DIRECTIONS].T.astype(np.float32)
        return np.asarray((d**2).sum(axis=1) - (z**2).sum(axis=1))

    def difference(self) -> tuple[float, float]:
        """The largest error of the covariance, against a fit of the patches, and what rounding
        allows."""
        space, batch = self.pca.eigenspace_, Eigenspace.of(np.stack(self.held))
        allowed = sum(float(e.rounding.scatters.max()) for e in (space, batch)) / len(self.held)
        found = float(abs(space.covariance() - batch.covariance()).max())
        return found, allowed + space.lost


def follow(
    frames: Array, box: Array, memory: Memory, particles: int, rng: np.random.Generator
) -> Array:
    """The boxes (T, 4) of what is in `box` (4,) of the first of the pictures (T, H, W)."""
    x, y, *size = box
    best = np.array([x + size[0] / 2, y + size[1] / 2, 0.0, 0.0, 0.0])
    memory.learn(_contrasts(frames[0], best[None], size)[0])
    found, cloud = [_box(best, size)], np.repeat(best[None], particles, axis=0)
    for frame in frames[1:]:
        cloud = cloud + rng.normal(size=cloud.shape) * _MOVES
        scores = -memory.distances(_contrasts(frame, cloud, size)) / _SPREAD
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        best = weights @ cloud
        memory.learn(_contrasts(frame, best[None], size)[0])
        found.append(_box(best, size))
        cloud = cloud[rng.choice(particles, particles, p=weights)]
    return np.stack(found)


def _contrasts(frame: Array, states: Array, size: list[float]) -> Array:
    """The patches less the mean of each."""
    patches = patches_at(frame, states, size)
    return np.asarray(patches - patches.mean(axis=1, keepdims=True))


def patches_at(frame: Array, states: Array, size: list[float]) -> Array:
    """The patches (m, SIDE^2) under states (m, 5) of an object of `size` (width, height)."""
    grid = (np.arange(SIDE) + 0.5) / SIDE - 0.5
    u, v = (part.ravel() for part in np.meshgrid(grid * size[0], grid * size[1]))
    scale, ratio = np.exp(states[:, 2]), np.exp(states[:, 4] / 2)
    cos, sin = scale * np.cos(states[:, 3]), scale * np.sin(states[:, 3])
    x = states[:, [0]] + np.outer(cos * ratio, u) - np.outer(sin / ratio, v)
    y = states[:, [1]] + np.outer(sin * ratio, u) + np.outer(cos / ratio, v)
    # A pixel has the value at its centre.
    return between(frame, x - 0.5, y - 0.5)


def between(frame: Array, x: Array, y: Array) -> Array:
    """The picture (H, W) at places between pixels, bilinearly; beyond its border the border's.

    >>> between(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([0.5, 9.0]), np.array([0.5, 0.0]))
    array([1.5, 1. ])
    """
    H, W = frame.shape
    x, y = np.clip(x, 0, W - 1), np.clip(y, 0, H - 1)
    i, j = np.minimum(x.astype(np.intp), W - 2), np.minimum(y.astype(np.intp), H - 2)
    a, b = (x - i).astype(frame.dtype), (y - j).astype(frame.dtype)
    pixels, at = frame.ravel(), j * W + i
    top = (1 - a) * pixels[at] + a * pixels[at + 1]
    bottom = (1 - a) * pixels[at + W] + a * pixels[at + W + 1]
    return np.asarray((1 - b) * top + b * bottom)


def _box(state: Array, size: list[float]) -> Array:
    w, h = np.exp(state[2] + np.array([1, -1]) * state[4] / 2) * size
    return np.array([state[0] - w / 2, state[1] - h / 2, w, h])
