"""Sources of records to teach a model or ask it about: tables, arrays, streams, pictures.

A source is read in blocks of records: an id, a label, numbers or a picture, and a contributor.
Whatever is wrong with it is said in one line that names the place.
"""

from knowmore.workbench.sources.label_studio import StudioTask as StudioTask
from knowmore.workbench.sources.label_studio import annotated as annotated
from knowmore.workbench.sources.label_studio import chosen as chosen
from knowmore.workbench.sources.label_studio import numbered as numbered
from knowmore.workbench.sources.label_studio import picture_address as picture_address
from knowmore.workbench.sources.label_studio import task_alone as task_alone
from knowmore.workbench.sources.label_studio import task_origin as task_origin
from knowmore.workbench.sources.label_studio import tasks_source as tasks_source
from knowmore.workbench.sources.records import TEXT as TEXT
from knowmore.workbench.sources.records import Holds as Holds
from knowmore.workbench.sources.records import NotNumbers as NotNumbers
from knowmore.workbench.sources.records import RecordBlock as RecordBlock
from knowmore.workbench.sources.records import Source as Source
from knowmore.workbench.sources.records import Wanted as Wanted
from knowmore.workbench.sources.records import content_id as content_id
from knowmore.workbench.sources.records import open_source as open_source
from knowmore.workbench.sources.records import record_bytes as record_bytes
from knowmore.workbench.sources.records import single_row as single_row
