"""What a model is taught and asked about: tables, arrays, streams and pictures.

A source is read in blocks of records: an id, a label, numbers or a picture, and a contributor.
Whatever is wrong with it is said in one line that names the place.
"""

from knowmore.cli.sources.opening import open_source as open_source
from knowmore.cli.sources.opening import single_row as single_row
from knowmore.cli.sources.records import Block as Block
from knowmore.cli.sources.records import Source as Source
from knowmore.cli.sources.records import Wanted as Wanted
