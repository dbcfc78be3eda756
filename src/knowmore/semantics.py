"""How similar the things are that classes are named after, according to WordNet.

`WordNet.load` finds and reads the database; models get names and numbers from it. See
docs/semantics.md.
"""

from knowmore.transfer.wordnet import Similarities, Synset, WordNet

__all__ = ["Similarities", "Synset", "WordNet"]
