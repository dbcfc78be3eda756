"""The papers behind knowmore: one folder for each, with its experiments and what they compare with.

An experiment is a module with `run`, which computes a frozen result and nothing else, and
`report`, which draws it, writes it down and says what it means: see `findings.Report`. To add
one, write the module and name it here; `toy-2d` is `toy_2d.py` in the folder of its paper.

`python -m papers` lists the experiments, `python -m papers toy-2d --quick` runs one.
"""

from typing import NamedTuple


class Paper(NamedTuple):
    """A paper: its short title, and its experiments by name with a line on what each shows."""

    title: str
    experiments: dict[str, str]


PAPERS = {
    "incremental_gp": Paper(
        "Lütz, Rodner and Denzler: Incremental Learning Using Gaussian Processes",
        {
            "toy-2d": "Fig. 1: scores and variance while classes grow and appear.",
            "update-times": "Fig. 2: the time to add k examples to n, against batch.",
            "known-classes": "Fig. 3: recognition while classes become known one by one.",
            "growing-examples": "Fig. 4: recognition while all classes get more examples.",
            "recognition": "Fifteen Scenes and Caltech-101: recognition rates by several features.",
        },
    ),
    "eigenspaces": Paper(
        "Kim: slides on eigenspaces, and Incremental LDA",
        {
            "eigenspace-merge": "Merged and split models of faces, against batch.",
            "incremental-lda": "Discriminants learnt bit by bit, against batch.",
            "subspace-monitor": "Anomalies and changes in a series, El Niño since 1970.",
            "monitor-power": "Streams made up: what the monitor sees, and its false alarms.",
            "tracking": "A car and a face in films, by patches that are learnt and forgotten.",
        },
    ),
    "n_plus_one": Paper(
        "Kuzborskij, Orabona and Caputo: From N to N+1",
        {
            "n-plus-one": "One class more from few examples, against other ways.",
            "picture-kernels": "Caltech-256: kernels of each kind of features, and of all.",
        },
    ),
    "one_shot": Paper(
        "Rodner and Denzler: One-Shot Learning of Object Categories",
        {"one-shot": "A class from one picture, with the help of another class."},
    ),
    "practice": Paper(
        "Everything in practice: defaults beside the usual peers",
        {"practice": "One-shot, N+1, wrong labels, unknowns, probabilities, kernels: verdicts."},
    ),
    "tables": Paper(
        "What knowmore chooses for itself, without any argument",
        {
            "tables": "Public tables as they come, against scikit-learn's models: ranks, verdicts.",
            "mixed-tables": "Texts and blanks: the command against recipes of Python.",
            "picture-tables": "Embeddings and histograms: not below the earlier default.",
        },
    ),
    "texts": Paper(
        "Texts that packages bring",
        {"texts": "Few texts of each class, classes one by one, wrong labels, foreign texts."},
    ),
    "scale": Paper(
        "Many rows: linear and forest Gaussian processes",
        {"scale": "A data set of many real rows, named by --data, against the usual peers."},
    ),
}

# It names the folder of the published data sets.
VARIABLE = "KNOWMORE_DATA"

# The names of all experiments.
NAMES = [name for paper in PAPERS.values() for name in paper.experiments]
# Where each experiment is, and `scale` on each data set.
MODULES = {
    name: f"papers.{folder}.{name.replace('-', '_')}"
    for folder, paper in PAPERS.items()
    for name in paper.experiments
    if name != "scale"
}
SCALE = {
    "fashion": "papers.scale.fashion",
    "kdd99": "papers.scale.kdd99",
    "flights": "papers.scale.flights",
    "land-sea": "papers.scale.land_sea",
}
