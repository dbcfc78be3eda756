"""Tools of all layers, which know no model: arguments, arrays, tables, files, threads, machine.

This is the front door: other packages import from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from knowmore._base.arguments import a_type as a_type
from knowmore._base.arguments import as_array as as_array
from knowmore._base.arguments import check_sparse as check_sparse
from knowmore._base.arguments import choice as choice
from knowmore._base.arguments import flag as flag
from knowmore._base.arguments import in_memory as in_memory
from knowmore._base.arguments import is_empty as is_empty
from knowmore._base.arguments import is_missing as is_missing
from knowmore._base.arguments import is_real as is_real
from knowmore._base.arguments import is_whole as is_whole
from knowmore._base.arguments import number as number
from knowmore._base.arguments import one_each as one_each
from knowmore._base.arguments import real_numbers as real_numbers
from knowmore._base.arguments import shape_of as shape_of
from knowmore._base.arguments import some as some
from knowmore._base.arguments import unmasked as unmasked
from knowmore._base.arguments import whole_number as whole_number
from knowmore._base.arrays import Array as Array
from knowmore._base.arrays import Frozen as Frozen
from knowmore._base.arrays import bounded as bounded
from knowmore._base.arrays import derived as derived
from knowmore._base.arrays import enough_memory as enough_memory
from knowmore._base.arrays import first_not_finite as first_not_finite
from knowmore._base.arrays import leading as leading
from knowmore._base.arrays import mixed as mixed
from knowmore._base.arrays import norm as norm
from knowmore._base.arrays import read_only as read_only
from knowmore._base.arrays import remembered as remembered
from knowmore._base.concurrency import apart as apart
from knowmore._base.concurrency import cached_property as cached_property
from knowmore._base.concurrency import moment as moment
from knowmore._base.concurrency import progress as progress
from knowmore._base.concurrency import report as report
from knowmore._base.concurrency import uninterrupted as uninterrupted
from knowmore._base.display import BLUE as BLUE
from knowmore._base.display import DIGITS as DIGITS
from knowmore._base.display import GREEN as GREEN
from knowmore._base.display import GREY as GREY
from knowmore._base.display import ORANGE as ORANGE
from knowmore._base.display import PURPLE as PURPLE
from knowmore._base.display import SKY as SKY
from knowmore._base.display import VERMILION as VERMILION
from knowmore._base.display import TableAnswer as TableAnswer
from knowmore._base.display import digits_of as digits_of
from knowmore._base.display import quiet_axes as quiet_axes
from knowmore._base.display import read_cell as read_cell
from knowmore._base.display import visible as visible
from knowmore._base.display import written_cell as written_cell
from knowmore._base.files import Arrays as Arrays
from knowmore._base.files import File as File
from knowmore._base.files import Savable as Savable
from knowmore._base.files import array_in as array_in
from knowmore._base.files import check_folder as check_folder
from knowmore._base.files import check_name as check_name
from knowmore._base.files import check_writable as check_writable
from knowmore._base.files import load as load
from knowmore._base.files import part_of as part_of
from knowmore._base.files import parts_beside as parts_beside
from knowmore._base.files import save as save
from knowmore._base.files import sweep as sweep
from knowmore._base.files import undamaged as undamaged
from knowmore._base.files import user_folder as user_folder
from knowmore._base.files import write_errors as write_errors
from knowmore._base.files import written as written
from knowmore._base.folders import files_in as files_in
from knowmore._base.machine import Function as Function
from knowmore._base.machine import available_memory as available_memory
from knowmore._base.machine import check_free as check_free
from knowmore._base.machine import compiled as compiled
from knowmore._base.machine import missing_extra as missing_extra
from knowmore._base.machine import optional as optional
from knowmore._base.machine import require as require
from knowmore._base.tables import Id as Id
from knowmore._base.tables import Names as Names
from knowmore._base.tables import as_ids as as_ids
from knowmore._base.tables import by_name as by_name
from knowmore._base.tables import check_aligned as check_aligned
from knowmore._base.tables import check_once as check_once
from knowmore._base.tables import column_names as column_names
from knowmore._base.tables import columns_of as columns_of
from knowmore._base.tables import first_difference as first_difference
from knowmore._base.tables import ids_of as ids_of
from knowmore._base.tables import in_order as in_order
from knowmore._base.tables import index_of as index_of
from knowmore._base.tables import is_count as is_count
from knowmore._base.tables import is_mask as is_mask
from knowmore._base.tables import joint_names as joint_names
from knowmore._base.tables import labels_by_id as labels_by_id
from knowmore._base.tables import masked as masked
from knowmore._base.tables import warn_if_renumbered as warn_if_renumbered

if TYPE_CHECKING:
    from knowmore._base.unfitted import Unfitted as Unfitted


def __getattr__(name: str) -> Any:
    # Scikit-learn is slow to load, and `knowmore --help` does not need it.
    if name != "Unfitted":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from knowmore._base.unfitted import Unfitted

    return Unfitted
