"""Models of texts: classes of short texts from a few of each."""
