"""The nouns of WordNet: which synsets a noun means, and which synsets are above a synset.

A synset is a set of nouns that mean the same. Synsets are numbered in the order of data.noun;
lemmas, the nouns in lower case, in the order of index.noun.

The database, data.noun, index.noun, noun.exc and counts of texts, ic-*.dat, is in a folder, or in a
tar archive that is read in place. Parsing takes seconds, so its result is kept in the user's cache,
in a file named by the SHA-256 of all that was read. A damaged file there is replaced, and where
nothing can be written there is no cache.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TypeVar, final

import numpy as np
from scipy.sparse import csr_array, eye_array

from knowmore._base import Array, Frozen, cached_property, load, save, user_folder
from knowmore.errors import InvalidInput, MissingData

_T = TypeVar("_T")

VARIABLE = "KNOWMORE_DATA"
ARCHIVE = "wordnet30_nouns.tar.xz"
DEBIAN = Path("/usr/share/wordnet")

_FILES = ("data.noun", "index.noun", "noun.exc")
# Princeton's archives have the database in "dict"; counts come in a separate folder.
_FOLDERS = ("", "dict", "ic")
# Change it when the same files are parsed or stored in another way.
_FORMAT = 4
# A hypernym is what a noun is a kind of, an instance hypernym what it is an instance of.
_HYPERNYMS = ("@", "@i")
_FETCH = "It is cut off, damaged, or of another version of WordNet: fetch it again."
# Counts are written with fifteen digits.
_ROUNDING = 1e-14
# The rules of WordNet's morphy for nouns: endings of plurals, and of their singulars.
_PLURAL = ("s", "ses", "xes", "zes", "ches", "shes", "men", "ies")
_SINGULAR = ("", "s", "x", "z", "ch", "sh", "man", "y")
_JOINTS = str.maketrans("", "", "-_.")
# Parts and sides that data sets name after a thing, as in "car_side" or "cougar_face".
_VIEWS = frozenset(("back", "body", "easy", "face", "front", "head", "rear", "side", "top", "view"))
# The singulars of irregular plurals.
_Exceptions = Mapping[str, Sequence[str]]


@final
@dataclass(frozen=True, eq=False)
class Nouns(Frozen):
    """n synsets, and m lemmas that mean them.

    synsets : a line for each synset: its nouns, then " | " and the gloss; all lines as bytes
    lemmas : a line for each lemma
    exceptions : noun.exc, lines of a plural and its singulars
    above, above_from : the hypernyms of synset i are above[above_from[i]:above_from[i + 1]]
    senses, senses_from : the synsets that lemma i means, most frequent first, in the same way
    hyponyms : (n,), how many synsets are below each
    offsets : (n,), the positions in data.noun, by which other files refer to a synset
    texts, frequencies : the names of the texts that were counted, and (texts, n), the part of each
        that speaks of a synset or of one below
    """

    synsets: Array
    lemmas: Array
    exceptions: Array
    above: Array
    above_from: Array
    senses: Array
    senses_from: Array
    hyponyms: Array
    offsets: Array
    texts: Array
    frequencies: Array

    def __len__(self) -> int:
        return len(self.offsets)

    def look_up(self, noun: str) -> tuple[int, ...]:
        """The synsets that a noun means, most frequent first; none if WordNet does not have it.

        A noun counts as a plural only if no lemma is spelt like it: gas is not a plural of Ga. Then
        come lemmas that differ by blanks, hyphens or full stops. The last resort is the head of a
        compound: a touring bike is a bike.
        """
        return next(filter(None, map(self._spelt, (noun, *heads(noun)))), ())

    def _spelt(self, noun: str) -> tuple[int, ...]:
        """The synsets that a noun means as a whole."""
        spellings = forms(noun, self._exceptions)
        similar = (
            [lemma for form in some for lemma in self._by_letters.get(letters(form), ())]
            for some in spellings
        )
        for lemmas in chain(spellings, similar):
            if found := [sense for lemma in lemmas for sense in self.senses_of(lemma)]:
                return tuple(dict.fromkeys(found))
        return ()

    def senses_of(self, lemma: str) -> tuple[int, ...]:
        """The synsets that a lemma means, most frequent first."""
        line = self.lines.get(lemma)
        if line is None:
            return ()
        return tuple(self.senses[self.senses_from[line] : self.senses_from[line + 1]].tolist())

    def hypernyms(self, row: int) -> tuple[int, ...]:
        """The synsets that a synset is a kind of, or an instance of."""
        above, start = self._hierarchy
        return tuple(above[start[row] : start[row + 1]])

    def subsumers(self, row: int) -> dict[int, int]:
        """The synset and all synsets above it, each with the smallest number of steps to it."""
        found, steps, ring = {row: 0}, 0, [row]
        while ring:
            steps += 1
            ring = [up for one in ring for up in self.hypernyms(one) if up not in found]
            found |= dict.fromkeys(ring, steps)
        return found

    def describe(self, row: int) -> tuple[tuple[str, ...], str]:
        """The nouns of a synset, in their own spelling, and its gloss."""
        nouns, _, gloss = self._synset_lines[row].partition(" | ")
        return tuple(nouns.split(" ")), gloss

    @cached_property
    def lines(self) -> dict[str, int]:
        """The line of each lemma."""
        return {lemma: line for line, lemma in enumerate(_lines(self.lemmas))}

    @cached_property
    def counts(self) -> dict[str, Array]:
        """The frequencies (n,) by the name of the text."""
        return dict(zip(self.texts.tolist(), self.frequencies, strict=True))

    @cached_property
    def _synset_lines(self) -> list[str]:
        return _lines(self.synsets)

    @cached_property
    def _hierarchy(self) -> tuple[list[int], list[int]]:
        # A few numbers at a time are read faster from a list.
        return self.above.tolist(), self.above_from.tolist()

    @cached_property
    def _by_letters(self) -> dict[str, list[str]]:
        return _grouped((letters(lemma), [lemma]) for lemma in self.lines)

    @cached_property
    def _exceptions(self) -> dict[str, list[str]]:
        lines = [line.split() for line in _lines(self.exceptions) if line]
        return _grouped((plural.replace("-", "_"), singulars) for plural, *singulars in lines)


def _lines(text: Array) -> list[str]:
    return text.tobytes().decode().split("\n")


def _grouped(pairs: Iterable[tuple[str, list[str]]]) -> dict[str, list[str]]:
    """All values of each key."""
    found: dict[str, list[str]] = {}
    for key, values in pairs:
        found.setdefault(key, []).extend(values)
    return found


def forms(noun: str, exceptions: _Exceptions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The spelling of WordNet, with irregular singulars; then the singulars that rules give.

    exceptions : the singulars of irregular plurals, which are spelt with underscores

    >>> forms("Church mice", {"mice": ("mouse",)})
    (('church_mice',), ('church_mouse',))
    >>> forms("Men of war", {"men_of_war": ("man-of-war",)})
    (('men_of_war', 'man-of-war'), ())
    >>> forms("boxes", {})
    (('boxes',), ('boxe', 'box'))
    """
    plain = re.sub(r"\s+", "_", noun.strip().lower())
    irregular = exceptions.get(plain.replace("-", "_"), ())
    return (plain, *irregular), tuple(_singulars(plain, exceptions))


def heads(noun: str) -> Iterator[str]:
    """Nouns that a compound may be a kind of: its last words, the most words first.

    Numbers at either end, and words for what is seen of a thing, are no part of its name.

    >>> list(heads("touring-bike")), list(heads("electric-guitar-101")), list(heads("car_side"))
    (['bike'], ['electric_guitar', 'guitar'], ['car'])
    """
    whole = words = re.split(r"[-_\s]+", noun.strip(" -_").lower())
    # As in "252.car-side-101".
    words = [re.sub(r"^\d+\.?", "", words[0]), *words[1:]]
    words = words if words[0] else words[1:]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _VIEWS):
        words = words[:-1]
    if words != whole and words:
        yield "_".join(words)
    for i in range(1, len(words)):
        yield "_".join(words[i:])


def _singulars(noun: str, exceptions: _Exceptions) -> Iterator[str]:
    # Only the last of several words has the ending of the plural.
    last = re.split("[-_]", noun)[-1]
    head = noun.removesuffix(last)
    yield from (head + singular for singular in exceptions.get(last, ()))
    if last.endswith("ss"):
        return
    for plural, singular in zip(_PLURAL, _SINGULAR, strict=True):
        if last.endswith(plural) and last != plural:
            yield head + last.removesuffix(plural) + singular


def letters(noun: str) -> str:
    """The noun without hyphens, underscores and full stops, whose use varies.

    >>> letters("hot-air_balloon")
    'hotairballoon'
    """
    return noun.translate(_JOINTS)


# -- reading the database ------------------------------------------------------------------------


def read(path: str | os.PathLike[str] | None) -> Nouns:
    """The nouns in a folder or tar archive; None looks for it in the usual places."""
    source = _locate() if path is None else Path(path)
    try:
        return _cached(_contents(source))
    except FileNotFoundError as error:
        # A MissingData says which file is missing.
        why = str(error) if isinstance(error, MissingData) else "There is no such file or folder."
        raise MissingData(f"WordNet was not found in {str(source)!r}. {why}") from error
    # Damage makes tarfile and the decompressors raise more than their own errors.
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        problem = f"{str(source)!r} cannot be read as WordNet."
        raise InvalidInput(f"{problem} It may be cut off or damaged: {why}") from error


def _cached(contents: Mapping[str, bytes]) -> Nouns:
    """The nouns in the files, from the cache if they were parsed before."""
    digest = hashlib.sha256(f"{_FORMAT}\n".encode())
    for name, content in sorted(contents.items()):
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    file = f"wordnet-{digest.hexdigest()[:32]}.npz"
    # The cache folder or the file may be missing, or the file damaged.
    with suppress(MissingData, InvalidInput):
        return load(user_folder() / file, "WordNet", lambda _, arrays: Nouns(**arrays))
    nouns = parse(_texts(contents))
    # There is no cache folder, or no room or permission to write.
    with suppress(OSError):
        user_folder().mkdir(parents=True, exist_ok=True)
        save(user_folder() / file, "WordNet", {}, vars(nouns))
    return nouns


# -- files and archives --------------------------------------------------------------------------


def _locate() -> Path:
    """The archive in the folder KNOWMORE_DATA, or else the folder of Debian's wordnet-base."""
    named = os.environ.get(VARIABLE)
    if named and (archive := Path(named, ARCHIVE)).is_file():
        return archive
    if DEBIAN.is_dir():
        return DEBIAN
    absent = f"{ARCHIVE} is not in {named!r}, the folder {VARIABLE}"
    tried = absent if named else f"{VARIABLE} is not set"
    raise MissingData(
        f"WordNet was not found: {tried}, and Debian's wordnet-base is not in {str(DEBIAN)!r}. Set "
        f"{VARIABLE} to a folder that holds {ARCHIVE}, install wordnet-base, or call "
        f"WordNet.load(path)."
    )


def _contents(source: Path) -> dict[str, bytes]:
    """The wanted files of a folder by their names, or an archive under the name ""."""
    if not source.is_dir():
        return {"": source.read_bytes()}
    # Reversed, so that the first folder that has a file wins.
    folders = [source / name for name in reversed(_FOLDERS) if (source / name).is_dir()]
    files = {file.name: file for folder in folders for file in folder.iterdir()}
    return {name: file.read_bytes() for name, file in files.items() if _is_wanted(name)}


def _texts(contents: Mapping[str, bytes]) -> dict[str, str]:
    """The text of each wanted file by its name."""
    files = _unpacked(contents[""]) if "" in contents else contents
    if missing := [name for name in _FILES if name not in files]:
        wanted = f"Name a folder or archive with {', '.join(_FILES)}."
        raise MissingData(f"It has no {' and no '.join(missing)}. {wanted}")
    return {name: content.decode() for name, content in files.items()}


def _unpacked(content: bytes) -> dict[str, bytes]:
    found = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            name = PurePosixPath(member.name).name
            if _is_wanted(name) and (file := archive.extractfile(member)):
                found[name] = file.read()
    return found


def _is_wanted(name: str) -> bool:
    return name in _FILES or (name.startswith("ic-") and name.endswith(".dat"))


# -- parsing -------------------------------------------------------------------------------------


def parse(texts: Mapping[str, str]) -> Nouns:
    """The nouns in the texts of data.noun, index.noun, noun.exc and any ic-*.dat.

    >>> nouns = parse({
    ...     "data.noun": "00000000 03 n 01 entity 0 000 | all there is  \\n"
    ...     "00000052 05 n 02 dog 0 Canis_familiaris 0 001 @ 00000000 n 0000 | it barks  \\n",
    ...     "index.noun": "canis_familiaris n 1 1 @ 1 0 00000052  \\ndog n 1 1 @ 1 1 00000052  \\n"
    ...     "entity n 1 1 ~ 1 1 00000000  \\n",
    ...     "noun.exc": "",
    ... })
    >>> nouns.look_up("dogs"), nouns.hypernyms(1), nouns.hyponyms
    ((1,), (0,), array([1, 0]))
    """
    synsets = list(_records("data.noun", texts["data.noun"], _synset))
    if not synsets:
        raise InvalidInput("data.noun has no synset. Is it a file of the database?")
    offsets, words, glosses, hypernyms = zip(*synsets, strict=True)
    index = dict(_records("index.noun", texts["index.noun"], _lemma))
    rows = {offset: row for row, offset in enumerate(offsets)}
    above, above_from = _pointers("data.noun", hypernyms, rows)
    senses, senses_from = _pointers("index.noun", index.values(), rows)
    for offset, some in zip(offsets, words, strict=True):
        for noun in some.lower().split(" "):
            if offset not in index.get(noun, ""):
                missing = f"index.noun does not list the synset {offset!r} under {noun!r}."
                raise InvalidInput(f"{missing} {_FETCH}")
    *lines, last = texts["noun.exc"].split("\n")
    if last or any(line and len(line.split()) < 2 for line in lines):
        raise InvalidInput("noun.exc is not as WordNet writes it: a plural, its singulars.")
    nouns = Nouns(
        synsets=_encoded(map(" | ".join, zip(words, glosses, strict=True))),
        lemmas=_encoded(index),
        exceptions=_encoded(lines),
        above=above,
        above_from=above_from,
        senses=senses,
        senses_from=senses_from,
        hyponyms=_hyponyms(above, above_from),
        offsets=np.array(offsets, dtype=np.int64),
        texts=np.empty(0, dtype=str),
        frequencies=np.empty((0, len(rows))),
    )
    counted = {name: text for name, text in texts.items() if name.endswith(".dat")}
    names = np.array([name.removesuffix(".dat") for name in counted], dtype=str)
    table = np.array([frequencies(nouns, name, text) for name, text in counted.items()])
    return replace(nouns, texts=names, frequencies=table.reshape(-1, len(nouns)))


def _encoded(lines: Iterable[str]) -> Array:
    """Lines as bytes: in an array of text, NumPy takes four bytes for a letter."""
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


def frequencies(nouns: Nouns, name: str, text: str) -> Array:
    """(n,): the counts of a file such as ic-brown.dat, as parts of the count of the roots.

    Its lines have the offset of a synset with its part of speech, how often a text speaks of it
    or of one below, and ROOT if nothing is above. Every synset has a line, even if its count is
    zero, so that a file that was cut off is noticed.
    """
    if text and not text.endswith("\n"):
        raise InvalidInput(f"{name} breaks off within its last line. Fetch it again.")
    rows = {f"{offset}n": row for row, offset in enumerate(nouns.offsets.tolist())}
    counts, total = np.zeros(len(rows)), 0.0
    for synset, count, is_root in _records(name, text, _count):
        if synset.endswith("v"):
            continue
        row = rows.pop(synset, None)
        if row is None:
            why = "the database has no such synset, or it was counted before"
            raise InvalidInput(f"{name} counts {synset!r}, but {why}. {_FETCH}")
        counts[row] = count
        total += count * is_root
    if rows:
        raise InvalidInput(f"{name} lacks {len(rows)} of {len(counts)} synsets. {_FETCH}")
    below = np.repeat(np.arange(len(counts)), np.diff(nouns.above_from))
    is_ordered = (counts[below] * (1 - _ROUNDING) <= counts[nouns.above]).all()
    if not (is_ordered and 0 < total < np.inf and counts.min() >= 0 and counts.max() <= total):
        rule = "finite, not negative, no larger than those of the hypernyms and of the ROOTs"
        raise InvalidInput(f"{name} has impossible counts: they must be {rule}. {_FETCH}")
    return counts / total


def _records(name: str, text: str, parse: Callable[[str], _T]) -> Iterator[_T]:
    """Each line without the header, as `parse` reads it.

    The licence at the top is indented; counts begin with the version of WordNet. Let `parse` return
    strings and numbers: many small lists would keep the garbage collector busy.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line[:1].strip() and not line.startswith("wnver::"):
            try:
                yield parse(line)
            except (IndexError, ValueError) as error:
                raise InvalidInput(f"{name}, line {number}: not as WordNet writes it.") from error


def _synset(line: str) -> tuple[str, str, str, str]:
    """The offset, nouns, gloss and hypernyms of a synset."""
    facts, bar, gloss = line.partition(" | ")
    # offset, file, n, number of words (hexadecimal), word, id, ..., number of pointers,
    # pointer, offset, part of speech, which words, ...
    values = facts.split(" ")
    end = 4 + 2 * int(values[3], 16)
    pointers = values[end + 1 :]
    if not bar or end == 4 or len(pointers) != 4 * int(values[end]):
        raise ValueError(line)
    pairs = zip(pointers[::4], pointers[1::4], strict=True)
    above = [at for kind, at in pairs if kind in _HYPERNYMS]
    return values[0], " ".join(values[4:end:2]), gloss.strip(), " ".join(above)


def _lemma(line: str) -> tuple[str, str]:
    """A lemma and its senses."""
    # lemma, n, number of senses, number of pointers, pointers, two counts, offsets.
    values = line.split()
    count = int(values[2])
    if count < 1 or len(values) != 6 + int(values[3]) + count:
        raise ValueError(line)
    return values[0], " ".join(values[-count:])


def _count(line: str) -> tuple[str, float, bool]:
    synset, count, *root = line.split()
    return synset, float(count), root == ["ROOT"]


def _pointers(name: str, lists: Iterable[str], rows: Mapping[str, int]) -> tuple[Array, Array]:
    """The rows of all offsets, and where each list begins; at last, where all of them end."""
    found: list[int] = []
    ends = [0]
    try:
        for offsets in lists:
            found += [rows[offset] for offset in offsets.split(" ") if offset]
            ends.append(len(found))
    except KeyError as error:
        problem = f"{name} refers to the synset {error.args[0]!r}, which data.noun does not have."
        raise InvalidInput(f"{problem} {_FETCH}") from error
    return np.array(found, dtype=np.int64), np.array(ends)


def _hyponyms(above: Array, above_from: Array) -> Array:
    """(n,): how many synsets are below each, however many paths lead there."""
    n = len(above_from) - 1
    step = csr_array((np.ones(len(above), dtype=bool), above, above_from), shape=(n, n))
    reach, known = step + eye_array(n, dtype=bool, format="csr"), -1
    while reach.nnz != known:
        known = reach.nnz
        reach = reach @ reach
    return np.bincount(reach.indices, minlength=n) - 1
