"""Pictures of clothes."""

from __future__ import annotations

from papers.data.location import arrays_of
from papers.data.split import Split


def fashion_mnist() -> Split:
    """Fashion-MNIST: 60,000 pictures to learn from and 10,000 to be tested, of ten kinds.

    X (n, 28, 28) are grey levels from 0 to 255 as bytes, y (n,) the kinds from 0 to 9. H. Xiao,
    K. Rasul and R. Vollgraf, Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning
    Algorithms, 2017.
    """
    with arrays_of("fashion_mnist.npz") as file:
        return Split(
            file["train_images"], file["train_labels"], file["test_images"], file["test_labels"]
        )
