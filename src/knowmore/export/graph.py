"""A fitted model as an ONNX graph in double precision."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any, final

import numpy as np

from knowmore._base import Array, File, check_writable, choice, flag, optional, written
from knowmore.errors import InvalidInput
from knowmore.export.description import (
    VANISHED,
    Description,
    Node,
    check_size,
    describe,
)
from knowmore.export.looking import with_network
from knowmore.export.stages import Input
from knowmore.export.viewing import view_of
from knowmore.images import Embedding

# Old enough for every runtime in use, new enough for all that is needed here.
_OPSET, _IR = 17, 8
# One row of the question, inside of the loop over all.
_ROW = "/x"
# Sets of operations beside the common one, with their versions.
_DOMAINS = {"ai.onnx.ml": 2}
# What protobuf can hold, less a little for everything that is not a number of the model.
_MOST_BYTES = 2**31 - 2**20


def to_onnx(
    estimator: Any,
    path: File,
    *,
    pictures: Embedding | None = None,
    variance: bool = True,
    dtype: str = "float64",
) -> None:
    """Write a fitted model as an ONNX graph that computes in float64.

    estimator : as for `describe`
    path : the file, replaced when the new one is complete
    pictures : how pictures became the rows that the estimator has learnt, by `extract`: then the
        network is in the graph; a model in a file knows it
    variance : whether the graph answers with variances. Without, the file of n examples is smaller
        by n^2 numbers; nor are there probabilities, which depend on them
    dtype : the type of the numbers that the graph takes, "float64" or "float32"

    The input is X (m, d), or pictures (m, h, w, 3), uint8, as the metadata say. A classifier's
    outputs are label (m,), scores (m, M) with a column for each class in sorted order, and if the
    estimator has them probabilities (m, M) and variance (m,). A regressor's are value and variance,
    (m,), or (m, q) for rows of q targets. All numbers that it returns are float64. Values beyond
    what a histogram kernel takes are not refused: a graph cannot raise an error.
    """
    onnx = optional("onnx", "onnx")
    check_writable(path)
    with_variance = flag("variance", variance)
    choice("dtype", dtype, ("float64", "float32"))
    check_size(estimator, "An ONNX file", _MOST_BYTES, variance=with_variance)
    view, of = view_of(estimator, pictures), describe(estimator, variance=with_variance)
    # A least-squares SVM has probabilities without a variance.
    chances = with_variance or of.kind == "LSSVMClassifier"
    # A network gives float64; pictures are bytes.
    model = _Writer(onnx, dtype if view is None else "float64").model(of, chances=chances)
    if view is not None:
        model = with_network(onnx, model, view)
    onnx.checker.check_model(model, full_check=True)
    with written(path) as file:
        file.write(model.SerializeToString())


@final
class _Writer:
    """Nodes and numbers of one graph; operations return the names of their results."""

    def __init__(self, onnx: Any, dtype: str = "float64", outer: _Writer | None = None) -> None:
        self.onnx, self.helper, self.kind = onnx, onnx.helper, onnx.TensorProto.DOUBLE
        self.dtype = dtype
        # The features of the model, (m, d).
        self.X = "X"
        self.nodes: list[Any] = []
        self.numbers: list[Any] = [] if outer is None else outer.numbers
        self.known: dict[Any, str] = {} if outer is None else outer.known
        self.prefix = "" if outer is None else "row_"
        self.domains: set[str] = set()

    def __call__(self, operation: str, *inputs: Any, **attributes: Any) -> str:
        """The result of an operation on results and numbers."""
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        # Columns have names, too; hardly any like this.
        name = f"/{self.prefix}{operation}_{len(self.nodes)}"
        if "domain" in attributes:
            self.domains.add(attributes["domain"])
        self.nodes.append(self.helper.make_node(operation, names, [name], name, **attributes))
        return name

    def constant(self, value: Any, name: str | None = None) -> str:
        """A number or an array, float64 unless it is of whole numbers, labels or truth values."""
        array = np.asarray(value)
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size < 64 else object()
        if key not in self.known:
            name = f"/{name or f'number_{len(self.known)}'}"
            self.known[key] = name
            if array.dtype.kind == "U":
                try:
                    text = [one.encode() for one in array.ravel().tolist()]
                except UnicodeEncodeError as error:
                    raise InvalidInput(
                        f"The label {error.object!r} is no valid Unicode. Rename it to write it to "
                        f"a file."
                    ) from error
                kind = self.onnx.TensorProto.STRING
                self.numbers.append(self.helper.make_tensor(name, kind, array.shape, text))
            else:
                array = np.ascontiguousarray(array)
                self.numbers.append(self.onnx.numpy_helper.from_array(array, name))
        return self.known[key]

    # -- the model -------------------------------------------------------------------------------

    def model(self, of: Description, *, chances: bool = True) -> Any:
        """The graph of a description.

        chances : whether a classifier answers with probabilities
        """
        helper, outputs = self.helper, []
        inputs = [self.input(one) for one in of.inputs]
        given = tuple(self.in_double(one) for one in of.inputs)
        for stage in of.before:
            given = (stage.nodes(self, *given),)
        (self.X,) = given
        for name, (result, kind, shape) in self.results(of, chances).items():
            self.nodes.append(helper.make_node("Identity", [result], [name], name))
            outputs.append(helper.make_tensor_value_info(name, kind, ["m", *shape]))
        others = [helper.make_opsetid(one, _DOMAINS[one]) for one in sorted(self.domains)]
        model = helper.make_model(
            helper.make_graph(self.nodes, of.kind, inputs, outputs, self.numbers),
            producer_name="knowmore",
            producer_version=version("knowmore"),
            opset_imports=[helper.make_opsetid("", _OPSET), *others],
            ir_version=_IR,
        )
        about = {"kind": of.kind, "columns": json.dumps(of.columns)}
        for stage in of.before[:1]:
            about |= {name: json.dumps(value) for name, value in stage.about().items()}
        if of.classes is not None:
            about["classes"] = json.dumps(of.classes.tolist())
        helper.set_model_props(model, about)
        return model

    def input(self, of: Input) -> Any:
        """An input of the graph; numbers are of the type that was asked for."""
        types = {"str": self.onnx.TensorProto.STRING}
        kind = self.dtype if of.kind == "float64" else of.kind
        known = types.get(kind) or self.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        return self.helper.make_tensor_value_info(of.name, known, ["m", *of.shape])

    def in_double(self, of: Input) -> str:
        """The result that is this input, if it is of numbers then in float64."""
        exact = of.kind != "float64" or self.dtype == of.kind
        return of.name if exact else self.double(of.name)

    def double(self, result: str) -> str:
        """The result as float64."""
        return self("Cast", result, to=self.kind)

    def results(self, of: Description, chances: bool) -> dict[str, tuple[str, Any, list[int]]]:
        """The outputs by name: the result, its type, and the shape behind m rows."""
        M, double = len(of.b), self.kind
        k = self("Sub", self.X, of.X) if of.kernel is None else self.cross(of.kernel, of.X)
        scores = self("Add", self("MatMul", k, of.A), of.b)
        variance = None if of.R is None else self.variance(of, k)
        if of.classes is None:
            values = {"value": scores}
            if variance is not None:
                column = self("Unsqueeze", variance, np.array([1]))
                values["variance"] = self("Mul", column, of.squares)
            if not of.flat:
                return {name: (one, double, [M]) for name, one in values.items()}
            flat = {n: self("Squeeze", one, np.array([1])) for n, one in values.items()}
            return {name: (one, double, []) for name, one in flat.items()}
        best = self("ArgMax", scores, axis=1, keepdims=0)
        label = self("Gather", self.constant(of.classes, "classes"), best)
        kind = self.onnx.TensorProto.STRING
        if of.classes.dtype.kind != "U":
            kind = self.helper.np_dtype_to_tensor_dtype(np.dtype(of.classes.dtype))
        results = {"label": (label, kind, []), "scores": (scores, double, [M])}
        if chances:
            shares = self.probabilities(scores, variance, of.temperature)
            results["probabilities"] = (shares, double, [M])
        return results if variance is None else results | {"variance": (variance, double, [])}

    def variance(self, of: Description, k: str) -> str:
        """(m,), in the units of the targets as they are learnt."""
        H = self("MatMul", k, np.asarray(of.R).T)
        q = self("ReduceSumSquare", H, axes=[1], keepdims=0)
        if of.kernel is not None:
            q = self("Max", self("Sub", self.diagonal(of.kernel), q), 0.0)
        return self("Add", q, of.noise)

    # -- kernels ---------------------------------------------------------------------------------

    def cross(self, kernel: Node, X: Array) -> str:
        """kappa(x, X) for each row x of the question, (m, n).

        Row by row, so that differences of rows take no more memory than X. A product of matrices
        would be faster, but loses the digits of short distances.
        """
        row = _Writer(self.onnx, outer=self)
        examples = self.constant(X, "examples")
        k = row("Expand", row.between(kernel, examples), np.array([len(X)]))
        body = self.helper.make_graph(
            row.nodes,
            "row",
            [self.helper.make_tensor_value_info(_ROW, self.kind, [X.shape[1]])],
            [self.helper.make_tensor_value_info(k, self.kind, [len(X)])],
        )
        return self("Scan", self.X, num_scan_inputs=1, body=body)

    def between(self, kernel: Node, X: str) -> str:
        """kappa(x, X) for one row x, (n,) or one number for all."""
        kind, numbers = kernel.kind, kernel.numbers
        if kind in _ACCUMULATE:
            return self.accumulated(kind, [self.between(part, X) for part in kernel.parts])
        if kind in ("constant", "white"):
            return self.constant(numbers[0] if kind == "constant" else 0.0)
        if kind == "dot":
            return self("Add", self("MatMul", X, _ROW), numbers[0])
        if kind == "intersection":
            return self("ReduceSum", self("Min", X, _ROW), np.array([1]), keepdims=0)
        if kind in ("chi-squared", "city-block"):
            return self.decay(kind, numbers[0], X)
        apart = self("Div", self("Sub", X, _ROW), np.array(numbers))
        D2 = self("ReduceSumSquare", apart, axes=[1], keepdims=0)
        if kind == "rbf":
            return self("Exp", self("Mul", D2, -0.5))
        order = {"matern-1/2": 0.5, "matern-3/2": 1.5, "matern-5/2": 2.5}[kind]
        z = self("Min", self("Sqrt", self("Mul", D2, 2 * order)), VANISHED)
        E = self("Exp", self("Neg", z))
        if order == 0.5:
            return E
        polynomial = self("Add", z, 1.0)
        if order == 2.5:
            polynomial = self("Add", polynomial, self("Div", self("Mul", z, z), 3.0))
        return self("Mul", polynomial, E)

    def decay(self, kind: str, gamma: float, X: str) -> str:
        """exp(-gamma D) of the distances D of histograms X from one row x, (n,)."""
        apart = self("Sub", X, _ROW)
        if kind == "city-block":
            terms = self("Abs", apart)
        else:
            # The difference of two empty bins is zero for any divisor.
            held = self("Max", self("Add", X, _ROW), np.finfo(float).tiny)
            terms = self("Div", self("Mul", apart, apart), held)
        D = self("ReduceSum", terms, np.array([1]), keepdims=0)
        return self("Exp", self("Mul", D, -gamma))

    def diagonal(self, kernel: Node) -> str:
        """kappa(x, x) for each row of the question, (m,) or one number for all."""
        kind, numbers = kernel.kind, kernel.numbers
        if kind in _ACCUMULATE:
            return self.accumulated(kind, [self.diagonal(part) for part in kernel.parts])
        if kind in ("constant", "white"):
            return self.constant(numbers[0])
        if kind == "dot":
            return self("Add", self("ReduceSumSquare", self.X, axes=[1], keepdims=0), numbers[0])
        if kind == "intersection":
            return self("ReduceSum", self.X, np.array([1]), keepdims=0)
        return self.constant(1.0)

    def accumulated(self, kind: str, parts: list[str]) -> str:
        """The sum or product of results."""
        result = parts[0]
        for part in parts[1:]:
            result = self(_ACCUMULATE[kind], result, part)
        return result

    # -- probabilities ---------------------------------------------------------------------------

    def probabilities(self, scores: str, variance: str | None, temperature: float) -> str:
        """exp(scores / (temperature sqrt(1 + variance))), scaled to sum to one, (m, M)."""
        logs = self("Sub", scores, self("ReduceMax", scores, axes=[1], keepdims=1))
        if variance is not None:
            size = self("Sqrt", self("Add", variance, 1.0))
            logs = self("Div", logs, self("Unsqueeze", size, np.array([1])))
        chances = self("Exp", self("Div", logs, temperature))
        return self("Div", chances, self("ReduceSum", chances, np.array([1]), keepdims=1))


_ACCUMULATE = {"sum": "Add", "product": "Mul"}
