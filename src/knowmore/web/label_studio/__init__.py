"""A machine-learning backend of Label Studio: it asks for predictions, and its annotations teach.

`routes` answer it, `messages` are what it says, `pictures` come from it, `edits` change the model.
"""

from knowmore.web.label_studio.pictures import LabelStudioServer as LabelStudioServer
from knowmore.web.label_studio.routes import ROUTES as ROUTES
