"""Files as accidents and adversaries leave them."""

from __future__ import annotations


def mutants(data, rng, n, keep=4):
    """n times the file: with other bytes, cut, shortened inside, and with parts of it repeated.

    The first bytes, which say what it is, mostly stay.
    """
    for turn in range(n):
        new = bytearray(data)
        for at in rng.integers(len(new), size=rng.integers(1, 6)):
            if at >= keep or turn % 10 == 0:
                new[at] = rng.choice([0, 1, 127, 128, 255, rng.integers(256)])
        start, end = sorted(rng.integers(len(new), size=2))
        match turn % 5:
            case 1:
                del new[end:]
            case 2:
                del new[max(start, keep) : end]
            case 3:
                new[start:start] = new[start:end]
        yield bytes(new)


def fewer_rows(data):
    """An .npy file, or an archive of one, whose header asks for one row where there are more."""
    start = data.index(b"'shape': (") + len(b"'shape': (")
    end = data.index(b",", start)
    return data[:start] + b"1".rjust(end - start) + data[end:]
