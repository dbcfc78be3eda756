"""Everything in practice: knowmore with its default arguments beside what many would reach for."""
