"""I. Kuzborskij, F. Orabona and B. Caputo, From N to N+1: Multiclass Transfer Incremental
Learning."""
