"""An ONNX graph that begins with pixels: the network of a model of pictures before the model."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.export.viewing import View
from knowmore.images import as_onnx, efficientnet_lite0, is_onnx

# How pictures become the input of a graph, for its metadata.
_WAY: Final = (
    "uint8 (m, {h}, {w}, 3), red, green and blue: turn a picture upright, reduce it to a longest "
    "side of {longest} pixels with Pillow's Image.thumbnail(({longest}, {longest})), and then take "
    "Image.resize(({w}, {h}), BICUBIC, box) with the fractional box (x - r, y - r, x + r, y + r), "
    "which is not rounded to whole pixels: x and y are half of the width and the height, and r is "
    "{crop:.6g} / 2 of the shorter side"
)
_BEFORE: Final = """
<ir_version: 8, opset_import: ["": 17]>
before (uint8[{n}, {h}, {w}, 3] pictures) => (float[n, a, b, c] scaled)
<double whole = {{255.0}}, double[3] mean = {{{mean}}}, double[3] std = {{{std}}}>
{{
    wide = Cast <to = 11> (pictures)
    share = Div (wide, whole)
    centred = Sub (share, mean)
    units = Div (centred, std)
    single = Cast <to = 1> (units)
    scaled = Transpose <perm = {order}> (single)
}}
"""
_BEHIND: Final = """
<ir_version: 8, opset_import: ["": 17]>
behind (float[n, d] described) => (double[n, d] vectors)
{{
    means = ReduceMean <axes = {axes}, keepdims = 0> (described)
    vectors = Cast <to = 11> (means)
}}
"""


def with_network(onnx: Any, model: Any, view: View) -> Any:
    """The ONNX model of vectors X with the network of a view before it.

    The input is "pictures", uint8 (m, h, w, 3). Outputs and metadata stay; `pictures` in the
    metadata says how pictures become the input.
    """
    network = onnx.shape_inference.infer_shapes(_network(onnx, view.network.model))
    (given, *others), result = _inputs(network), network.graph.output[0]
    shape, vectors = _shape(given), _shape(result)
    if others or len(shape) != 4 or 3 not in (shape[1], shape[3]) or len(vectors) not in (2, 4):
        raise InvalidInput(
            f"model={view.network.model!r} turns {shape} into {vectors}, which cannot be before a "
            f"model. Give a network with one input, float32 (n, 3, h, w) or (n, h, w, 3), whose "
            f"first output is vectors (n, d) or maps."
        )
    last = shape[1] != 3
    several, *sides = (shape[i] for i in ((0, 1, 2) if last else (0, 2, 3)))
    h, w = (side if isinstance(side, int) else view.network.size for side in sides)
    before = _BEFORE.format(
        n=several if isinstance(several, int) else "m",
        h=h,
        w=w,
        mean=_three(view.network.mean),
        std=_three(view.network.std),
        order="[0, 1, 2, 3]" if last else "[0, 3, 1, 2]",
    )
    # Vectors have no axes to take means over.
    axes = "[1, 2]" if last else "[2, 3]"
    behind = _BEHIND.format(axes=axes)
    if len(vectors) == 2:
        behind = behind.replace(f"ReduceMean <axes = {axes}, keepdims = 0>", "Identity")
    prefix, parse = "network/", onnx.parser.parse_model
    parts = [parse(before), onnx.compose.add_prefix(network, prefix), parse(behind), model]
    links = [
        ("scaled", prefix + given.name),
        (prefix + result.name, "described"),
        ("vectors", "X"),
    ]
    whole, *rest = _of_one_version(onnx, parts)
    for link, part in zip(links, rest, strict=True):
        outputs = [one.name for one in part.graph.output]
        whole = onnx.compose.merge_models(whole, part, [link], outputs=outputs)
    about = {one.key: one.value for one in model.metadata_props}
    about["pictures"] = _WAY.format(h=h, w=w, longest=view.longest, crop=view.network.crop)
    del whole.metadata_props[:]
    onnx.helper.set_model_props(whole, about)
    whole.producer_name, whole.producer_version = model.producer_name, model.producer_version
    whole.graph.name = model.graph.name
    return whole


def _network(onnx: Any, network: Any) -> Any:
    """The network of an `Embedding` as an ONNX model."""
    if is_onnx(network):
        try:
            return onnx.load(network)
        except OSError as error:
            problem = f"model={network!r} cannot be read: {error.strerror}."
            raise InvalidInput(f"{problem} Check the path.") from error
    if network == "efficientnet-lite0":
        return as_onnx(efficientnet_lite0())
    raise InvalidInput(
        f"model={network!r} cannot be before a model in an ONNX file. Write a torch module as an "
        f"ONNX file of its own, and give its path: Embedding('backbone.onnx')."
    )


def _inputs(model: Any) -> list[Any]:
    """The inputs of a model that are no numbers of its own: older files list these, too."""
    own = {one.name for one in model.graph.initializer}
    return [one for one in model.graph.input if one.name not in own]


def _shape(value: Any) -> list[int | str]:
    """The shape of an input or output; an axis of any length is a name."""
    return [
        one.dim_value if one.HasField("dim_value") else one.dim_param or "n"
        for one in value.type.tensor_type.shape.dim
    ]


def _three(value: Any) -> str:
    numbers: Array = np.broadcast_to(value, 3)
    return ", ".join(repr(float(one)) for one in numbers)


def _of_one_version(onnx: Any, models: list[Any]) -> list[Any]:
    """The models by the newest set of operations, and the newest form, that one of them has."""
    versions = [
        next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
        for model in models
    ]
    newest, form = max(versions), max(model.ir_version for model in models)
    converted = [
        model if known == newest else onnx.version_converter.convert_version(model, newest)
        for model, known in zip(models, versions, strict=True)
    ]
    for model in converted:
        model.ir_version = form
    return converted
