"""Closed forms on top of a Factor or an Eigenspace: immutable values that answer questions."""

from importlib import import_module
from typing import Any

from knowmore.models.covariance import Covariance
from knowmore.models.covariance import check_memory as check_memory
from knowmore.models.covariance import check_rows as check_rows
from knowmore.models.covariance import finite as finite
from knowmore.models.covariance import max_variance as max_variance
from knowmore.models.following import Following
from knowmore.models.forest import Forest as Forest
from knowmore.models.forest import Reached as Reached
from knowmore.models.forest import answered as answered
from knowmore.models.forest import columns_in as columns_in
from knowmore.models.kernel_model import KernelModel, Model
from knowmore.models.linear import LinearModel
from knowmore.models.linear import check_room as check_room
from knowmore.models.loo import LeftOut
from knowmore.models.loo import LooScores as LooScores
from knowmore.models.loo import bound as bound
from knowmore.models.loo import loo_scores as loo_scores
from knowmore.models.loo import sum_rounding as sum_rounding
from knowmore.models.newness import distance_left_out as distance_left_out
from knowmore.models.newness import weighed as weighed
from knowmore.models.noise import noise_by_loo as noise_by_loo
from knowmore.models.novelty import Told as Told
from knowmore.models.novelty import Unseen as Unseen
from knowmore.models.novelty import check_several as check_several
from knowmore.models.novelty import separates as separates
from knowmore.models.novelty import threshold as threshold
from knowmore.models.novelty import unknown_rows as unknown_rows
from knowmore.models.novelty import unseen as unseen
from knowmore.models.probabilities import Trial as Trial
from knowmore.models.probabilities import class_probabilities
from knowmore.models.probabilities import log_density as log_density
from knowmore.models.probabilities import log_marginal_likelihood as log_marginal_likelihood
from knowmore.models.probabilities import mislabelling as mislabelling
from knowmore.models.targets import Coding as Coding
from knowmore.models.targets import (
    Targets,
    Weighting,
    normalised_values,
    one_vs_all,
    real_values,
)
from knowmore.models.targets import class_weighting as class_weighting
from knowmore.models.targets import one_vs_all_and_absent as one_vs_all_and_absent
from knowmore.models.trees import DEEP as DEEP
from knowmore.models.trees import Cut as Cut
from knowmore.models.trees import InnerNode as InnerNode
from knowmore.models.trees import Leaf as Leaf
from knowmore.models.trees import Members as Members
from knowmore.models.trees import Sample as Sample
from knowmore.models.trees import Tree as Tree
from knowmore.models.trees import branch as branch
from knowmore.models.trees import keys_of as keys_of

__all__ = [
    "Covariance",
    "Following",
    "KernelModel",
    "LeftOut",
    "LinearModel",
    "Model",
    "Targets",
    "Weighting",
    "class_probabilities",
    "normalised_values",
    "one_vs_all",
    "real_values",
]

# Names that were here before; they stay importable from here.
_MOVED = {
    "ClassMeans": "knowmore.subspaces",
    "Discriminant": "knowmore.subspaces",
    "OneShot": "knowmore.transfer",
    "Ranking": "knowmore.transfer",
    "Rule": "knowmore.transfer",
    "Support": "knowmore.transfer",
    "Transfer": "knowmore.transfer",
    "Window": "knowmore.subspaces",
    "lagged": "knowmore.subspaces",
}


_RENAMED = {"Transfer": "TransferCoding"}


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MOVED[name]), _RENAMED.get(name, name))
