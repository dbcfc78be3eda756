"""The questions that people ask of an open model, shared by command, page, service and notebook.

Each question is a function of a `Store` that returns a plain value. A face parses, calls, and
shows.
"""

from knowmore.workbench.asking import TUNABLE as TUNABLE
from knowmore.workbench.asking import ClassEvaluation as ClassEvaluation
from knowmore.workbench.asking import ValueEvaluation as ValueEvaluation
from knowmore.workbench.asking import evaluate as evaluate
from knowmore.workbench.asking import explain as explain
from knowmore.workbench.asking import export as export
from knowmore.workbench.asking import history as history
from knowmore.workbench.asking import history_entry as history_entry
from knowmore.workbench.asking import open_suspects as open_suspects
from knowmore.workbench.asking import status as status
from knowmore.workbench.asking import suspects as suspects
from knowmore.workbench.asking import tune as tune
from knowmore.workbench.describing import Describer as Describer
from knowmore.workbench.learning import LearnOptions as LearnOptions
from knowmore.workbench.learning import Learnt as Learnt
from knowmore.workbench.learning import learn as learn
from knowmore.workbench.learning import learn_source as learn_source
from knowmore.workbench.making import made as made
from knowmore.workbench.making import make as make
from knowmore.workbench.model import check_same_features as check_same_features
from knowmore.workbench.model import describer_of as describer_of
from knowmore.workbench.model import describing as describing
from knowmore.workbench.model import ids_named as ids_named
from knowmore.workbench.model import label_named as label_named
from knowmore.workbench.model import labels_of as labels_of
from knowmore.workbench.model import learnt_kind as learnt_kind
from knowmore.workbench.model import new_label as new_label
from knowmore.workbench.model import one_row as one_row
from knowmore.workbench.model import predicts_values as predicts_values
from knowmore.workbench.model import wanted as wanted
from knowmore.workbench.pools import UnlabelledPool as UnlabelledPool
from knowmore.workbench.pools import novelty as novelty
from knowmore.workbench.pools import pool_for as pool_for
from knowmore.workbench.pools import suggest as suggest
from knowmore.workbench.pools import unlabelled as unlabelled
from knowmore.workbench.predicting import Judge as Judge
from knowmore.workbench.predicting import Predictor as Predictor
from knowmore.workbench.predicting import RowPrediction as RowPrediction
from knowmore.workbench.predicting import predictions as predictions
from knowmore.workbench.previewing import compared as compared
from knowmore.workbench.previewing import edited as edited
from knowmore.workbench.previewing import left_out as left_out
from knowmore.workbench.previewing import merge as merge
from knowmore.workbench.previewing import preview_edit as preview_edit
from knowmore.workbench.previewing import preview_forget as preview_forget
from knowmore.workbench.previewing import preview_merge as preview_merge
from knowmore.workbench.sources import Source as Source
from knowmore.workbench.sources import Task as Task
from knowmore.workbench.sources import Wanted as Wanted
from knowmore.workbench.sources import annotated as annotated
from knowmore.workbench.sources import chosen as chosen
from knowmore.workbench.sources import numbered as numbered
from knowmore.workbench.sources import picture_address as picture_address
from knowmore.workbench.sources import task_alone as task_alone
from knowmore.workbench.sources import task_origin as task_origin
from knowmore.workbench.sources import tasks_source as tasks_source
