"""Connections of a network."""

from __future__ import annotations

import gzip
import tarfile

import numpy as np

from knowmore._base import optional, undamaged
from papers.data.location import DAMAGED, find
from papers.data.split import Split

# The columns that are words: protocol, service and flag.
WORDS = (1, 2, 3)
_NAMES = [*map(str, range(41)), "label"]


def kdd99() -> Split:
    """KDD Cup 1999: connections of a network, normal or one of many attacks, in order.

    Most rows of the files are duplicates; the first of each are here: 145,586 of 494,021 to learn
    from, of 23 classes, and 77,291 of 311,029 to be tested, of 38. X (n, 41) are numbers, but for
    the columns `WORDS`, which number the words of both parts; y (n,) are names such as "normal" and
    "smurf". S. Stolfo et al., from DARPA's programme of 1998.
    """
    pyarrow, csv = (optional(library, "tables") for library in ("pyarrow", "pyarrow.csv"))
    path = find("kdd99.tar")
    with undamaged(path, "a data set", DAMAGED), tarfile.open(path) as archive:
        parts = [_lines(archive, part) for part in ("kddcup.data_10_percent", "corrected")]
        both = b"\n".join(line for part in parts for line in part)
        options = csv.ReadOptions(column_names=_NAMES)
        table = csv.read_csv(pyarrow.BufferReader(both), options).combine_chunks()
        X = np.empty((len(table), 41))
        for i in range(41):
            column = table[str(i)].combine_chunks()
            X[:, i] = column.dictionary_encode().indices if i in WORDS else column
        y = np.char.rstrip(table["label"].to_numpy().astype(str), ".")
    n = len(parts[0])
    return Split(X[:n], y[:n], X[n:], y[n:])


def _lines(archive: tarfile.TarFile, part: str) -> list[bytes]:
    """The lines of one file, each once."""
    member = archive.extractfile(f"kdd99/{part}.gz")
    if member is None:
        raise ValueError(f"{part} is no file")
    return list(dict.fromkeys(gzip.decompress(member.read()).splitlines()))
