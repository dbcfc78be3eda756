"""Tables as they come: numbers, categories, truth values, dates and blanks become numbers.

A cell is read by the type of its column, and the types are told by the first rows. What was learnt
is a frozen value, an `Encoding`, which JSON can write.
"""

from knowmore.tables.cells import BLANKS as BLANKS
from knowmore.tables.cells import Cell as Cell
from knowmore.tables.cells import has_comma as has_comma
from knowmore.tables.cells import is_padded as is_padded
from knowmore.tables.cells import not_a_number as not_a_number
from knowmore.tables.columns import CategoryColumn as CategoryColumn
from knowmore.tables.columns import Column as Column
from knowmore.tables.columns import DateColumn as DateColumn
from knowmore.tables.columns import NumberColumn as NumberColumn
from knowmore.tables.columns import TruthColumn as TruthColumn
from knowmore.tables.encoder import TableEncoder as TableEncoder
from knowmore.tables.encoding import Encoding as Encoding
from knowmore.tables.encoding import WrongCell as WrongCell
from knowmore.tables.encoding import cells_of as cells_of
from knowmore.tables.encoding import json_of as json_of
from knowmore.tables.guessing import Guess as Guess
from knowmore.tables.guessing import Options as Options

__all__ = [
    "CategoryColumn",
    "DateColumn",
    "Encoding",
    "NumberColumn",
    "Options",
    "TableEncoder",
    "TruthColumn",
]
