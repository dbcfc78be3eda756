"""The loops of exact sums, compiled at first use, and whole numbers in words.

A sum of products may need more than 64 bits. It is the sum of words[w] 2**(62 w), with words from
-2**61 to 2**61 - 1: so every number has one form, and equal sums are equal bits. An array of such
numbers has as many words as the largest needs.
"""

from __future__ import annotations

from functools import cache
from math import ldexp
from types import SimpleNamespace

import numpy as np

from knowmore._base import Array, Function, compiled, read_only, uninterrupted

WORD = 62
HALF = np.int64(2**61)
# The types of rows that are read as they are.
READ = tuple(map(np.dtype, (np.float64, np.float32, np.uint8)))


@cache
def loops() -> SimpleNamespace:
    """The functions below, compiled; the first call takes a second or more.

    Rows that are read, and words, are read-only: to numba that is a type of its own.
    """

    def trial(*made: Function) -> None:
        hashed, read, count, accumulate, combine, difference = made
        ones, whole = read_only(np.ones(2)), np.ones(1, np.int64)
        sums, words = np.zeros((1, 2), np.int64), np.zeros((2, 2, 2), np.int64)
        places = np.arange(2)
        rows = np.zeros((1, 2))
        keys = rows.view(np.uint64)
        hashed(read_only(rows), read_only(keys), keys[0].copy(), 1.0, keys[:, 0].copy(), np.ones(2))
        for kind in READ:
            read(read_only(np.zeros((1, 2), kind)), ones, ones, 2.0, rows)
        for Z in np.zeros((1, 2)), np.zeros((1, 2), np.float32):
            count(Z, np.zeros(1, np.int64), whole, sums)
            accumulate(words, np.zeros((2, 2), Z.dtype), (places, places), 8, 1, False)
        words, sums = read_only(words), read_only(sums)
        combine(words, words, -1)
        difference(words, 1, sums, sums, (places, places), True)

    functions = hashed, read, count, accumulate, combine, difference
    made = uninterrupted(lambda: compiled(trial, *functions, nogil=True))
    return SimpleNamespace(**{each.__name__: each for each in made})


def hashed(
    X: Array, keys: Array, multipliers: Array, largest: float, codes: Array, least: Array
) -> int:
    """Write a code of each row of X (n, D) to codes (n,): equal rows have equal codes.

    keys : the bits of X, (n, D)
    multipliers : odd numbers of 64 bits, (D,)
    least : the smallest absolute values but zero so far, (D,), which are updated

    Returns the first row with a number beyond the largest, or -1.
    """
    n, D = X.shape
    for i in range(n):
        code, inside = np.uint64(0), True
        for j in range(D):
            size = abs(X[i, j])
            inside = bool(inside and size <= largest)
            # Zeros of both signs are one number.
            if size > 0:
                code += (keys[i, j] ^ (keys[i, j] >> np.uint64(32))) * multipliers[j]
                if size < least[j]:
                    least[j] = size
        if not inside:
            return i
        codes[i] = code
    return -1


def read(X: Array, centres: Array, scale: Array, largest: float, Q: Array) -> int:
    """Write (X - centres) times scale (D,), as whole numbers, into Q; X and Q are (n, D).

    Returns the first row with a number beyond the largest, or -1.
    """
    n, D = X.shape
    for i in range(n):
        inside = True
        for j in range(D):
            x = np.float64(X[i, j])
            inside = bool(inside and abs(x) <= largest)
            Q[i, j] = np.rint((x - centres[j]) * scale[j])
        if not inside:
            return i
    return -1


def count(Z: Array, groups: Array, weights: Array, sums: Array) -> None:
    """Add each row of Z (n, P), times its weight (n,), to the sum of its group (G, P)."""
    for i in range(len(Z)):
        group, weight = groups[i], weights[i]
        for j in range(Z.shape[1]):
            sums[group, j] += weight * np.int64(Z[i, j])


def accumulate(
    words: Array, C: Array, places: tuple[Array, Array], shift: int, sign: int, mixed: bool
) -> None:
    """Add sign C 2**shift to the words (W, P, P), whose lower triangle counts.

    C : whole numbers (r, c) of at most 2**53
    places : the rows (r,) and columns (c,) of the sums that they belong to
    mixed : whether C is the product of two different limbs, so that C + C' is added; otherwise C
        is symmetric
    """
    W, first, shift = len(words), shift // 62, shift % 62
    rows, columns = places
    part = np.int64(62 - shift)
    for a in range(len(rows)):
        for b in range(len(columns)):
            i, j = rows[a], columns[b]
            if i < j:
                if not mixed:
                    break
                i, j = j, i
            value = sign * np.int64(C[a, b])
            if mixed and i == j:
                value *= 2
            # The last word has no other to carry to, and room.
            carry = value >> part if first + 1 < W else np.int64(0)
            low = words[first, i, j] + ((value - (carry << part)) << shift)
            for w in range(first, W):
                if w > first:
                    low = words[w, i, j] + carry
                    carry = np.int64(0)
                more = (low + HALF) >> 62 if w + 1 < W else np.int64(0)
                words[w, i, j] = low - (more << 62)
                carry += more
                if not carry:
                    break


def combine(a: Array, b: Array, sign: int) -> Array:
    """The words of a + sign b, (W, P, P), for as many of each."""
    words = np.zeros_like(a)
    W = len(a)
    for i in range(a.shape[1]):
        for j in range(i + 1):
            carry = np.int64(0)
            for w in range(W):
                low = a[w, i, j] + sign * b[w, i, j] + carry
                carry = (low + HALF) >> 62 if w + 1 < W else np.int64(0)
                words[w, i, j] = low - (carry << 62)
    return words


def difference(
    words: Array, total: int, a: Array, b: Array, powers: tuple[Array, Array], triangle: bool
) -> Array:
    """(V - a b' / N) 2**(up + across'), (R, P), for whole numbers V, a (R,), b (P,) in words.

    words : those of V, (W, R, P); a, b : (U, R) and (U, P)
    powers : up and across, whole numbers, (R,) and (P,)
    triangle : whether V is symmetric, and only its lower triangle is given

    N V - a b' is exact; only the result is rounded. Numbers are written to the base 2**31, with a
    sign in the highest digit.
    """
    W, R, P = words.shape
    U, (up, across) = len(a), powers
    found, digits = np.empty((R, P)), np.empty(max(2 * W, 4 * U) + 4, np.int64)
    base, digit = np.int64(31), np.int64(2**31 - 1)
    n0, n1 = total & digit, total >> base
    narrow = W == 2 and U == 1
    for i in range(R):
        for j in range(i + 1 if triangle else P):
            value, k = 0.0, 0
            if narrow and abs(words[1, i, j]) < 2**20:
                # Rows of one limb: four digits, and no sum of their products overflows.
                a0, a1, b0, b1 = a[0, i] & digit, a[0, i] >> base, b[0, j] & digit, b[0, j] >> base
                v0, v1, v2 = words[0, i, j] & digit, words[0, i, j] >> base, words[1, i, j]
                c0 = n0 * v0 - a0 * b0
                c1 = n0 * v1 + n1 * v0 - a1 * b0 - a0 * b1 + (c0 >> base)
                c2 = n0 * v2 + n1 * v1 - a1 * b1 + (c1 >> base)
                value = float(n1 * v2 + (c2 >> base))
                for c in (c2, c1, c0):
                    value = value * 2.0**31 + float(c & digit)
            else:
                digits[:] = 0
                for w in range(W):
                    v0, v1 = words[w, i, j] & digit, words[w, i, j] >> base
                    digits[2 * w] += n0 * v0 & digit
                    digits[2 * w + 1] += (n0 * v0 >> base) + (n0 * v1 & digit) + (n1 * v0 & digit)
                    digits[2 * w + 2] += (n0 * v1 >> base) + (n1 * v0 >> base) + (n1 * v1 & digit)
                    digits[2 * w + 3] += n1 * v1 >> base
                for u in range(U):
                    a0, a1 = a[u, i] & digit, a[u, i] >> base
                    for v in range(U):
                        b0, b1 = b[v, j] & digit, b[v, j] >> base
                        k = 2 * (u + v)
                        digits[k] -= a0 * b0 & digit
                        digits[k + 1] -= (a0 * b0 >> base) + (a0 * b1 & digit) + (a1 * b0 & digit)
                        digits[k + 2] -= (a0 * b1 >> base) + (a1 * b0 >> base) + (a1 * b1 & digit)
                        digits[k + 3] -= a1 * b1 >> base
                for d in range(len(digits) - 1):
                    digits[d + 1] += digits[d] >> base
                    digits[d] &= digit
                # Three digits are more than a double holds; many could be beyond its range.
                k = len(digits)
                while k and abs(value) < 2.0**93:
                    k -= 1
                    value = value * 2.0**31 + float(digits[k])
            found[i, j] = ldexp(value / total, 31 * k + up[i] + across[j])
            if triangle:
                found[j, i] = found[i, j]
    return found


def trimmed(words: Array, least: int = 1) -> Array:
    """Numbers (W, ...) in as few words as the largest needs, but in `least` words or more."""
    needed = len(words)
    while needed > least and not words[needed - 1].any():
        needed -= 1
    return words[:needed]


def padded(words: Array, length: int) -> Array:
    """Numbers (W, ...) in `length` words, or in more if they have more."""
    if len(words) >= length:
        return words
    return np.concatenate([words, np.zeros((length - len(words), *words.shape[1:]), np.int64)])


def added(a: Array, b: Array, sign: int) -> Array:
    """a + sign b for numbers in words, (W, ...) each."""
    if len(a) == len(b) == 1:
        total = np.asarray(a + sign * b)
        if not total.size or (total.min() >= -HALF and total.max() < HALF):
            return total
    length = max(len(a), len(b)) + 1
    words, carry = [], np.int64(0)
    for one, other in zip(padded(a, length), padded(b, length), strict=True):
        low = one + sign * other + carry
        carry = (low + HALF) >> WORD
        words.append(low - (carry << WORD))
    return trimmed(np.array(words))


def shifted(numbers: Array, shift: int) -> Array:
    """Whole numbers below 2**61, (...), times 2**shift, in words, (W, ...)."""
    first, shift = divmod(shift, WORD)
    high = numbers >> (WORD - shift)
    low = (numbers - (high << (WORD - shift))) << shift
    none = np.zeros((first, *numbers.shape), np.int64)
    # Added to nothing, so that both are in range.
    return added(np.concatenate([none, low[None], high[None]]), np.zeros_like(low[None]), 1)


def in_words(numbers: Array, least: int = 1) -> Array:
    """Python's whole numbers (...), of type object, in words, (W, ...)."""
    words, rest = list[Array](), np.asarray(numbers, dtype=object)
    while len(words) < least or rest.any():
        low = (rest + 2**61) % 2**WORD - 2**61
        words.append(low.astype(np.int64))
        rest = (rest - low) // 2**WORD
    return np.array(words)


def from_words(words: Array) -> Array:
    """Numbers in words, (W, ...), as Python's whole numbers, (...), of type object."""
    places = [2 ** (WORD * w) for w in range(len(words))]
    parts = [word.astype(object) * place for word, place in zip(words, places, strict=True)]
    return np.asarray(sum(parts), dtype=object)


def approximate(words: Array) -> Array:
    """Numbers in words, (W, ...), to the 64 bits of a long double, (...)."""
    value = np.zeros(words.shape[1:], np.longdouble)
    for word in words[::-1]:
        value = value * np.longdouble(2.0**WORD) + word
    return value
