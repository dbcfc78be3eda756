"""One file for each figure or table of the papers, and the demonstration.

An experiment is a module with `run`, which computes a frozen result and nothing else, and
`report`, which draws it, writes it down and says what it means: see `findings.Experiment`. To add
one, write the module and name it here; `toy-2d` is `toy_2d.py`.
"""

REPRODUCTIONS = {
    "toy-2d": "Fig. 1 of Lütz et al.: scores and variance while classes grow and appear.",
    "update-times": "Fig. 2 of Lütz et al.: the time to add k examples to n, against batch.",
    "known-classes": "Fig. 3 of Lütz et al.: recognition while classes become known one by one.",
    "growing-examples": "Fig. 4 of Lütz et al.: recognition while all classes get more examples.",
    "recognition": "Fifteen Scenes and Caltech-101: recognition rates by several features.",
    "one-shot": "Rodner and Denzler: a class from one picture, with the help of another class.",
    "eigenspace-merge": "Kim's slides: merged and split models of faces, against batch.",
    "incremental-lda": "Kim et al.: discriminants learnt bit by bit, against batch.",
    "n-plus-one": "Kuzborskij et al.: one class more from few examples, against other ways.",
    "subspace-monitor": "Kim's slides: anomalies and changes in a series, El Niño since 1970.",
}
