"""How a model sees pictures: the network before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.export.description import is_stored
from knowmore.images import LONGEST, Embedding, PictureDescriber, efficientnet_lite0, steps_of

# The licence of the weights asks for a notice wherever they are passed on.
NOTICE: Final = "EfficientNet-Lite0 (Tan and Le 2019), under the Apache License 2.0."


@final
@dataclass(frozen=True)
class View:
    """Pictures are reduced to a longest side, cut out, resized, and described by a network."""

    network: Embedding
    longest: int

    def parts(self) -> tuple[dict[str, Any], Array]:
        """A description of the network for JavaScript, and its weights, float32 and flat."""
        if self.network.model != "efficientnet-lite0":
            raise InvalidInput(
                f"A page cannot run {self.network.model!r}: the only network that it knows is "
                f"'efficientnet-lite0'. Nothing was written. Export ONNX instead, which takes any."
            )
        layers = efficientnet_lite0()
        weights = np.concatenate([each.ravel() for one in layers for each in (one.W, one.b)])
        described = {
            "longest": self.longest,
            "size": self.network.size,
            "crop": self.network.crop,
            "mean": np.broadcast_to(self.network.mean, 3).tolist(),
            "std": np.broadcast_to(self.network.std, 3).tolist(),
            "layers": [
                {
                    "outputs": layer.W.shape[0],
                    "inputs": layer.W.shape[1],
                    "k": layer.W.shape[2],
                    "stride": layer.stride,
                    "pads": layer.pads,
                    "groups": layer.groups,
                    "bounded": layer.bounded,
                    "back": layer.back,
                }
                for layer in layers
            ],
        }
        return described, weights


def view_of(model: Any, pictures: Embedding | None) -> View | None:
    """How a model sees pictures; None if it takes vectors.

    pictures : the network before an estimator, which `extract` asked; a model in a file knows it
    """
    if pictures is not None:
        return View(pictures, LONGEST)
    note = model.notes.get("pictures") if is_stored(model) else None
    if note is None or note["about"]["kind"] != "embedding":
        return None
    describer = PictureDescriber.stored(note, {})
    (network,) = steps_of(describer.kind)
    return View(network, describer.longest)
