"""Writes a small file of the present format for every kind, to be kept for ever.

    PYTHONPATH=src:tests python tests/make_formats.py

Run it once for a format, before that is released: the files say what later versions must read.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from store_kinds import KINDS, drawn

import knowmore
from knowmore.store import Store, kinds
from knowmore.store.file import FORMAT

FORMATS = Path(__file__).parent / "formats"


def write(name, path):
    """A file of this kind with a history."""
    rng = np.random.default_rng(3)
    X, y = drawn(name, rng, 10)
    X = abs(X).round(1)
    match name:
        case "pca":
            knowmore.EigenspacePCA(2).fit(X).save(path)
        case "lda":
            knowmore.EigenspaceLDA().fit(X, y).save(path)
        case "landmarks":
            knowmore.Landmarks(RBF(1.0), 3).fit(X).save(path)
        case "intersection-map":
            knowmore.IntersectionMap(4).fit(X).save(path)
        case _:
            with Store(path, KINDS[name]()) as store:
                store.add(X[:8], y[:8], contributor="ann", origins="table.csv")
                store.add(X[8:], y[8:], ids=["last", "é"], thumbnails=[b"picture", None])
                store.replace([5], X[6:7] + 0.5)
                store.relabel([4], y[3:4])
                store.undo()
                store.forget([7])


if __name__ == "__main__":
    FORMATS.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        for kind in sorted(set(kinds.KINDS) - {"eigenspace", "monitor"}):
            path = Path(folder) / f"{FORMAT}-{kind}.km"
            write(kind, path)
            model = knowmore.load(path)
            asked = abs(np.linspace(-1, 1, 3 * model.n_features_in_).reshape(3, -1))
            ask = getattr(model, "decision_function", None) or getattr(model, "predict", None)
            np.save(FORMATS / f"{path.stem}.npy", (ask or model.transform)(asked))
            packed = gzip.compress(path.read_bytes(), mtime=0)
            (FORMATS / f"{path.name}.gz").write_bytes(packed)
