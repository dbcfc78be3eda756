"""`knowmore tune`: better settings, kept in the file."""

from __future__ import annotations

from knowmore.cli.left_out import TUNABLE, fitted
from knowmore.cli.model import Model
from knowmore.insight.tune import Tuned, tune
from knowmore.store.staying import TUNE


def tuned(model: Model, objective: str, restarts: int, subset: int | None, dry_run: bool) -> Tuned:
    """What was found; kept unless `dry_run`."""
    found = tune(fitted(model, TUNABLE), objective, restarts=restarts, subset=subset)
    if found.changes and not dry_run:
        before, after = (
            one.get_params(deep=False) for one in (model.store.estimator, found.estimator)
        )
        changed = {name: value for name, value in after.items() if value != before[name]}
        # So named in the journal, the parameters are known to come from the examples.
        with model.store.together(TUNE):
            model.store.set_parameters(**changed)
    return found
