"""A. Lütz, E. Rodner and J. Denzler, Efficient Multi-Class Incremental Learning Using Gaussian
Processes."""
