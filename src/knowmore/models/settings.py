"""The settings that nobody gave: kernel and noise, chosen by the examples.

A panel of 256 examples chooses, of each class in turn the one with the smallest hash of its id; of
more than 32 classes up to 8 examples each. A hash does not depend on history, and the search of the
panel, see `knowmore.models.search`, is over a fixed grid: so the settings are a function of the set
of examples, and the law includes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from knowmore._base import Array, Frozen, Id, leading
from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from knowmore.kernels import (
    AnyKernel,
    default_kernel,
    rows_to_settle_width,
)
from knowmore.models.noise import noise_by_loo
from knowmore.models.search import ModelSettings, Search, first_other
from knowmore.models.targets import Coding, Weighting
from knowmore.models.trees import keys_of

# When settings that are not given are chosen: see `SettingsRule`.
MODES = ("first", "living", "median")
# The examples that choose: twice as many choose hardly better, at five times the cost. Where there
# are many classes, so many of each, but no more than the largest panel has.
PANEL, _OF_EACH, LARGEST = 256, 8, 1024
# With this many examples a choice is good enough to stay.
ENOUGH = 128
# The most kernels of a weighted sum: it has 331 candidates then.
MOST_KERNELS = 8

# -- the examples that choose ---------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class ChoosingPanel(Frozen):
    """The examples that choose, in the order of the hashes of their ids.

    Of each class the first ones in turn, until there are enough: a rare class has a say.

    serials (k,), labels (k,) or (k, q) : of these
    """

    serials: Array
    labels: Array

    @classmethod
    def of(cls, counted: Examples, classes: bool) -> ChoosingPanel:
        """The panel of examples of a weight above zero.

        classes : whether their labels are classes
        """
        labels = counted.labels
        rows = choosing_rows(keys_of(counted.names), labels if classes else None)
        return cls(counted.serials[rows], labels[rows])

    def rows(self, counted: Examples) -> Array:
        """The rows of the panel among the examples that it was taken from, (k,)."""
        return np.searchsorted(counted.serials, self.serials)

    def chose(self, other: ChoosingPanel) -> bool:
        """Whether another panel has the same examples with the same labels."""
        same = np.array_equal(self.serials, other.serials)
        return same and np.array_equal(self.labels, other.labels)


def choosing_rows(keys: Array, labels: Array | None, size: int | None = None) -> Array:
    """The rows of a panel among n examples with these hashes, (n,), in the order of the hashes.

    labels : the classes, (n,); None for values
    size : of the panel; None: as many as the classes need
    """
    order = np.lexsort((np.arange(len(keys)), keys))
    if labels is None or len(keys) <= PANEL:
        return order[:PANEL]
    _, codes, counts = np.unique(labels[order], return_inverse=True, return_counts=True)
    # The turn of each: how many of its class have smaller hashes.
    turns = np.empty(len(order), dtype=int)
    turns[np.argsort(codes, kind="stable")] = np.concatenate([np.arange(n) for n in counts])
    if size is None:
        size = int(np.clip(_OF_EACH * len(counts), PANEL, LARGEST))
    return order[np.sort(np.lexsort((np.arange(len(order)), turns))[:size])]


# -- what is left to choose, and when -------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class SettingsRule:
    """What an estimator gives, and how its examples choose the rest.

    kernel : given; several for a weighted sum of them; or None
    noise : given; "loo" for the best by the accuracy of all examples; or None
    mode : "first", chosen once there are enough examples; "living", after every edit; "median",
        the default kernel at the median distance, once there are a few
    coding, weighting, bias : of the model
    usual : the noise where nothing chooses it
    width : the number of leading columns that the kernel sees, None for all
    name : of the parameter that is the noise
    """

    kernel: AnyKernel | tuple[Kernel, ...] | None
    noise: float | str | None
    mode: str
    coding: Coding
    weighting: Weighting = field(default_factory=Weighting)
    bias: bool = False
    usual: float = 0.1
    width: int | None = None
    name: str = "noise"

    @property
    def is_given(self) -> bool:
        """Whether nothing is left to choose."""
        several = isinstance(self.kernel, tuple)
        return self.kernel is not None and not several and isinstance(self.noise, float)

    def kept(self, choice: Choice) -> ModelSettings | None:
        """The settings of an earlier choice that serve this rule; None if examples choose anew.

        They serve if they stay, and were chosen in the same way. A kernel or a noise that was given
        was not chosen.
        """
        before = choice.rule
        if before is None or not choice.settled or before.mode != self.mode:
            return None
        noise = isinstance(self.noise, float) or self.noise == before.noise
        left = self.kernel is None and before.kernel is None
        return choice.settings if left and noise else None

    def settles(self, examples: Examples) -> int | None:
        """How many of the first examples that count make a choice that stays; None: not yet."""
        one = self.kernel is not None and not isinstance(self.kernel, tuple)
        if one and (self.noise is not None or self.mode == "median"):
            return 0
        counted = examples.counted
        if self.mode == "median":
            return rows_to_settle_width(leading(counted.X, self.width))
        if self.mode == "living" or len(counted) < ENOUGH:
            return None
        labels, X = counted.labels, leading(counted.X, self.width)
        rows = [first_other(labels), first_other(X)]
        return None if None in rows else max(ENOUGH, *(row + 1 for row in rows if row is not None))

    def chosen(self, examples: Examples, before: Choice | None = None) -> Choice:
        """The choice of these examples.

        before : the choice before an edit, which stays if the same panel made it. What settles a
            choice is the first examples that are enough, so that adding many at once is the same as
            adding them one by one. Without it all examples choose: this is a fit.
        """
        first = self.settles(examples)
        if self.is_given:
            return Choice(self, self._fixed())
        counted = examples.counted
        if not len(counted) and before is not None:
            # Nothing is left to choose by; the next examples choose anew.
            return before.without(before.settings.ids)
        if before is not None and first is not None:
            counted = counted.without(np.arange(first, len(counted)))
        if self.mode == "median" or (first == 0 and isinstance(self.noise, str)):
            return Choice(self, self._median(counted, before), None, first is not None)
        known = None if before is None else before.panel
        panel = ChoosingPanel.of(counted, counted.labels.dtype.kind != "f")
        if before is not None and known is not None and known.chose(panel):
            settings = before.settings
        else:
            settings = self._searched(counted, panel, before)
        return Choice(self, settings, None if first is not None else panel, first is not None)

    def keeping(self, settings: ModelSettings) -> Choice:
        """The choice of these settings, but for a noise that is given."""
        noise = self.noise if isinstance(self.noise, float) else settings.noise
        return Choice(self, replace(settings, noise=noise))

    def at(self, kernel: AnyKernel) -> ModelSettings:
        """The settings with this kernel, and the noise that is given or usual."""
        return ModelSettings(kernel, self.noise if isinstance(self.noise, float) else self.usual)

    def _fixed(self) -> ModelSettings:
        assert self.kernel is not None
        assert not isinstance(self.kernel, tuple)
        assert isinstance(self.noise, float)
        return ModelSettings(self.kernel, self.noise)

    def _noise(self, kernel: AnyKernel, counted: Examples, before: Choice | None) -> float:
        """The noise where no search chooses it."""
        if isinstance(self.noise, float):
            return self.noise
        if self.noise is None:
            return self.usual
        if before is not None:
            return before.settings.noise
        return noise_by_loo(
            self.name, kernel, counted, self.weighting, bias=self.bias, width=self.width
        )

    def _median(self, counted: Examples, before: Choice | None) -> ModelSettings:
        kernel = self.kernel
        if isinstance(kernel, tuple):
            raise InvalidInput(
                f"kernel stands for {len(kernel)} kernel(s) whose weights and widths leave-one-out "
                f"chooses, which nothing does here. Give a kernel, or a sum of kernels; of "
                f"GPClassifier, LSSVMClassifier, GPRegressor and forests leave settings='first'."
            )
        if kernel is None:
            kernel = default_kernel(leading(counted.X, self.width))
            if before is not None and kernel == before.settings.kernel:
                kernel = before.settings.kernel
        return ModelSettings(kernel, self._noise(kernel, counted, before))

    def _searched(
        self, counted: Examples, panel: ChoosingPanel, before: Choice | None
    ) -> ModelSettings:
        rows = panel.rows(counted)
        some = Examples.of(counted.X[rows], counted.labels[rows], None, counted.weights[rows])
        found = Search.of(self, some).run()
        ids = tuple(counted.columns.ids.view[row] for row in rows)
        noise, kernel = found.noise, found.kernel
        if isinstance(self.noise, str):
            noise = self._noise(kernel, counted, before)
        # An equal kernel is the same object, so that a factor stays.
        if before is not None and kernel == before.settings.kernel:
            kernel = before.settings.kernel
        return replace(found, kernel=kernel, noise=noise, ids=ids)


@final
@dataclass(frozen=True, eq=False)
class Choice:
    """The settings of a model, and how they follow its examples.

    rule : None if they never change
    panel : the examples that chose; None if the choice is settled, or made otherwise
    settled : whether later edits leave the settings as they are
    """

    rule: SettingsRule | None
    settings: ModelSettings
    panel: ChoosingPanel | None = None
    settled: bool = True

    @classmethod
    def given(cls, kernel: AnyKernel, noise: float) -> Choice:
        """Settings that never change."""
        return cls(None, ModelSettings(kernel, noise))

    @property
    def mode(self) -> str | None:
        """When the settings are chosen; None: never."""
        return None if self.rule is None else self.rule.mode

    def after(self, examples: Examples) -> Choice:
        """The choice after an edit."""
        if self.settled or self.rule is None:
            return self
        return self.rule.chosen(examples, self)

    def with_kernel(self, kernel: AnyKernel) -> Choice:
        """The choice with an equal kernel in place of its own, so that both are the same object."""
        settings = self.settings
        if settings.kernel is kernel:
            return self
        return replace(self, settings=replace(settings, kernel=kernel))

    def without(self, ids: Iterable[Id]) -> Choice:
        """The choice, without what examples that leave have told of themselves.

        These are names and labels, and losses, in which each of the panel has a part. A panel of
        which some have left would be of no more use: the next edit draws another.
        """
        gone = set(ids)
        if gone.isdisjoint(self.settings.ids):
            return self
        kept = tuple(one for one in self.settings.ids if one not in gone)
        settings = replace(self.settings, candidates=(), ids=kept, measure="")
        return replace(self, settings=settings, panel=None)

    def yields_to(self, other: Choice) -> bool:
        """Whether a merge takes the settings of the other model: they stay, and these do not.

        Only those that were chosen in the same way; in the mode "living" none stay.
        """
        return other.settled and not self.settled and self.mode == other.mode
