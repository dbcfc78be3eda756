"""T.-K. Kim's slides on eigenspaces that are merged and split, and T.-K. Kim et al., Incremental
Linear Discriminant Analysis Using Sufficient Spanning Sets."""
