"""E. Rodner and J. Denzler, One-Shot Learning of Object Categories using Dependent Gaussian
Processes."""
