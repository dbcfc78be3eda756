"""Ways out of a living model: ONNX, a page for the browser, a table of its examples.

A model that leaves is a copy of what it is at that moment: it answers as the estimator does, and
neither learns nor forgets. After forgetting, export again.
"""

from knowmore.export.description import Description, Node, describe
from knowmore.export.description import column_names as column_names
from knowmore.export.graph import to_onnx
from knowmore.export.page import to_html, to_javascript
from knowmore.export.table import to_table

__all__ = [
    "Description",
    "Node",
    "describe",
    "to_html",
    "to_javascript",
    "to_onnx",
    "to_table",
]
