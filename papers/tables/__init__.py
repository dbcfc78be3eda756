"""Estimators without any argument on tables as they come; see `tables` and `picture_tables`."""
