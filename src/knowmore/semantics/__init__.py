"""What names of classes have to do with each other, by the nouns of WordNet.

`WordNet.load` reads the database wherever it is and answers questions about names; models get the
answers as names and numbers. See docs/semantics.md.
"""

from knowmore.semantics.wordnet import Similarities, Synset, WordNet

__all__ = ["Similarities", "Synset", "WordNet"]
