"""Closed forms on top of a Factor or an Eigenspace: immutable values that answer questions."""

from importlib import import_module
from typing import Any

from knowmore.editable import Model
from knowmore.models.covariance import (
    Covariance,
    check_memory,
    check_rows,
    explained,
    finite,
    matrix_rows,
    max_variance,
)
from knowmore.models.following import Following
from knowmore.models.forest import Forest, Reached, answered, columns_in
from knowmore.models.hinge import expansion
from knowmore.models.kernel_model import KernelModel, joint
from knowmore.models.linear import (
    LinearModel,
    as_columns,
    check_room,
    check_room_of,
    target_grid,
)
from knowmore.models.linear_loo import LinearLoo
from knowmore.models.loo import (
    LeftOut,
    LooScores,
    Unseen,
    bound,
    loo_scores,
    score_temperature,
    sum_rounding,
    unseen,
)
from knowmore.models.newness import (
    check_several,
    distance_left_out,
    nearest,
    newness_left_out,
    newness_of,
    null_space,
    separates,
    threshold,
    unknown_rows,
    values_by,
    weighed,
)
from knowmore.models.noise import noise_by_loo, robust_model
from knowmore.models.probabilities import (
    Trial,
    class_probabilities,
    log_density,
    log_losses,
    log_marginal_likelihood,
    mislabelling,
)
from knowmore.models.search import ModelSettings, Search, TriedKernel, first_other
from knowmore.models.settings import (
    LARGEST,
    MODES,
    MOST_KERNELS,
    PANEL,
    Choice,
    ChoosingPanel,
    SettingsRule,
    choosing_rows,
)
from knowmore.models.summed import Summed, beside_rows
from knowmore.models.targets import (
    Coding,
    Targets,
    Weighting,
    class_weighting,
    normalised_values,
    one_vs_all,
    one_vs_all_and_absent,
    real_values,
)
from knowmore.models.trees import DEEP, Cut, InnerNode, Leaf, Members, Tree, branch, keys_of
from knowmore.models.unrelated import FEW, are_of_one_length

__all__ = [
    "Covariance",
    "Following",
    "KernelModel",
    "LeftOut",
    "LinearModel",
    "Model",
    "ModelSettings",
    "Summed",
    "Targets",
    "TriedKernel",
    "Weighting",
    "class_probabilities",
    "normalised_values",
    "one_vs_all",
    "real_values",
]

# Names that were here before; they stay importable from here.
_MOVED = {
    **dict.fromkeys(("ClassMeans", "Discriminant", "Window", "lagged"), "knowmore.subspaces"),
    **dict.fromkeys(("OneShot", "Ranking", "Rule", "Support", "Transfer"), "knowmore.transfer"),
}
_RENAMED = {"Transfer": "TransferCoding"}


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MOVED[name]), _RENAMED.get(name, name))
