"""Vectors of pieces of words, from the files of the package `wordllama`: none is downloaded.

Its code is not used. It looks for its tokenizer in another folder than the one that it brings, and
so would download it.
"""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from knowmore._base import Array, missing_extra, optional, require, undamaged

WORDLLAMA: Final = "wordllama"
EXTRA: Final = "texts"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_PIECES = "tokenizers/l2_supercat_tokenizer_config.json"
# Bytes of a safetensors file that say how long its header is.
_LENGTH = 8
# Texts that are divided into pieces at a time.
_AT_ONCE = 256


def is_installed() -> bool:
    """Whether the vectors and what divides words into pieces are there."""
    return find_spec(WORDLLAMA) is not None and find_spec("tokenizers") is not None


def word_means(texts: list[str]) -> Array:
    """The mean vector of the pieces of each text, (n, 256); zeros for a text without a piece."""
    weights, pieces = _loaded()
    found = np.zeros((len(texts), weights.shape[1]))
    for begin in range(0, len(texts), _AT_ONCE):
        some = texts[begin : begin + _AT_ONCE]
        for row, one in enumerate(pieces.encode_batch_fast(some, add_special_tokens=False)):
            if one.ids:
                found[begin + row] = weights[one.ids].mean(axis=0, dtype=float)
    return found


@cache
def words_digest() -> str:
    """The SHA-256 of both files, on which the vectors depend."""
    files = (_file(name).read_bytes() for name in (_WEIGHTS, _PIECES))
    return sha256(b"".join(sha256(each).digest() for each in files)).hexdigest()


@cache
def _loaded() -> tuple[Array, Any]:
    """The vectors of the pieces, float32 (pieces, 256), and what divides texts into pieces."""
    tokenizers = optional("tokenizers", EXTRA)
    path = _file(_WEIGHTS)
    with undamaged(path, "the vectors of wordllama", "install it again."):
        data = path.read_bytes()
        end = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
        about = json.loads(data[_LENGTH:end])["embedding.weight"]
        begin, last = about["data_offsets"]
        numbers = np.frombuffer(data[end + begin : end + last], dtype="<f2")
        weights = numbers.reshape(about["shape"]).astype(np.float32)
    pieces = tokenizers.Tokenizer.from_file(str(_file(_PIECES)))
    pieces.no_truncation()
    pieces.no_padding()
    return weights, pieces


def _file(name: str) -> Path:
    """A file of the package, which is not imported."""
    require(WORDLLAMA, EXTRA)
    spec = find_spec(WORDLLAMA)
    assert spec is not None
    path = Path(str(spec.origin)).parent / name
    if not path.is_file():
        raise missing_extra(f"wordllama with {name}", EXTRA)
    return path
