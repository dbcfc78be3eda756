"""The questions that people ask of an open model, shared by command, page, service and notebook.

Each question is a function of a `Store` that returns a frozen value. A face parses, calls, and
shows. A module is loaded when a name of it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from knowmore.workbench.asking import GAUSSIAN as GAUSSIAN
    from knowmore.workbench.asking import PredictionParts as PredictionParts
    from knowmore.workbench.asking import Suspect as Suspect
    from knowmore.workbench.asking import SuspectList as SuspectList
    from knowmore.workbench.asking import estimator_of as estimator_of
    from knowmore.workbench.asking import explain as explain
    from knowmore.workbench.asking import open_suspects as open_suspects
    from knowmore.workbench.asking import suspects as suspects
    from knowmore.workbench.asking import tune as tune
    from knowmore.workbench.evaluating import ClassEvaluation as ClassEvaluation
    from knowmore.workbench.evaluating import ValueEvaluation as ValueEvaluation
    from knowmore.workbench.evaluating import can_tune as can_tune
    from knowmore.workbench.evaluating import evaluate as evaluate
    from knowmore.workbench.exporting import export as export
    from knowmore.workbench.learning import LearnOptions as LearnOptions
    from knowmore.workbench.learning import Learnt as Learnt
    from knowmore.workbench.learning import learn as learn
    from knowmore.workbench.making import Settled as Settled
    from knowmore.workbench.making import gathered as gathered
    from knowmore.workbench.making import made as made
    from knowmore.workbench.making import new_estimator as new_estimator
    from knowmore.workbench.making import seen_by as seen_by
    from knowmore.workbench.model import OpenModel as OpenModel
    from knowmore.workbench.model import Progress as Progress
    from knowmore.workbench.model import check_same_features as check_same_features
    from knowmore.workbench.model import describing as describing
    from knowmore.workbench.model import new_label as new_label
    from knowmore.workbench.model import noted as noted
    from knowmore.workbench.model import opened as opened
    from knowmore.workbench.pools import NovelRecord as NovelRecord
    from knowmore.workbench.pools import Suggested as Suggested
    from knowmore.workbench.pools import UnlabelledPool as UnlabelledPool
    from knowmore.workbench.pools import novelty as novelty
    from knowmore.workbench.pools import pool_for as pool_for
    from knowmore.workbench.pools import suggest as suggest
    from knowmore.workbench.predicting import Judge as Judge
    from knowmore.workbench.predicting import Predictor as Predictor
    from knowmore.workbench.predicting import RowPrediction as RowPrediction
    from knowmore.workbench.predicting import predictions as predictions
    from knowmore.workbench.previewing import AnswerChange as AnswerChange
    from knowmore.workbench.previewing import EditPreview as EditPreview
    from knowmore.workbench.previewing import ForgetPreview as ForgetPreview
    from knowmore.workbench.previewing import MergePreview as MergePreview
    from knowmore.workbench.previewing import changed_answers as changed_answers
    from knowmore.workbench.previewing import check_merge as check_merge
    from knowmore.workbench.previewing import edited as edited
    from knowmore.workbench.previewing import left_out as left_out
    from knowmore.workbench.previewing import merge as merge
    from knowmore.workbench.previewing import preview_edit as preview_edit
    from knowmore.workbench.previewing import preview_forget as preview_forget
    from knowmore.workbench.previewing import preview_merge as preview_merge
    from knowmore.workbench.reporting import HistoryEntry as HistoryEntry
    from knowmore.workbench.reporting import ModelStatus as ModelStatus
    from knowmore.workbench.reporting import history as history
    from knowmore.workbench.reporting import history_entry as history_entry
    from knowmore.workbench.reporting import status as status
    from knowmore.workbench.sources import Source as Source
    from knowmore.workbench.sources import Wanted as Wanted
    from knowmore.workbench.sources import open_source as open_source
    from knowmore.workbench.sources import single_row as single_row

_MODULES = {
    "asking": (
        "GAUSSIAN",
        "PredictionParts",
        "Suspect",
        "SuspectList",
        "estimator_of",
        "explain",
        "open_suspects",
        "suspects",
        "tune",
    ),
    "evaluating": (
        "ClassEvaluation",
        "ValueEvaluation",
        "can_tune",
        "evaluate",
    ),
    "exporting": ("export",),
    "learning": (
        "LearnOptions",
        "Learnt",
        "learn",
    ),
    "making": (
        "Settled",
        "gathered",
        "made",
        "new_estimator",
        "seen_by",
    ),
    "model": (
        "OpenModel",
        "Progress",
        "check_same_features",
        "describing",
        "new_label",
        "noted",
        "opened",
    ),
    "pools": (
        "NovelRecord",
        "Suggested",
        "UnlabelledPool",
        "novelty",
        "pool_for",
        "suggest",
    ),
    "predicting": (
        "Judge",
        "Predictor",
        "RowPrediction",
        "predictions",
    ),
    "previewing": (
        "AnswerChange",
        "EditPreview",
        "ForgetPreview",
        "MergePreview",
        "changed_answers",
        "check_merge",
        "edited",
        "left_out",
        "merge",
        "preview_edit",
        "preview_forget",
        "preview_merge",
    ),
    "reporting": (
        "HistoryEntry",
        "ModelStatus",
        "history",
        "history_entry",
        "status",
    ),
    "sources": (
        "Source",
        "Wanted",
        "open_source",
        "single_row",
    ),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
