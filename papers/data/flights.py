"""Flights in the order of time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from knowmore._base import optional, undamaged
from papers.arrays import Array
from papers.data.location import DAMAGED, find


class Flights(NamedTuple):
    """Departures (n,) to the minute, delays on arrival (n,) in minutes, distances (n,) in miles,
    and the airports of origin and destination (n,), as places in `airports`."""

    departure: Array
    delay: Array
    distance: Array
    origin: Array
    destination: Array
    airports: Array


def flights(every: int = 1) -> Flights:
    """Every so-manieth of 3,000,000 flights inside the USA, January to June 2001.

    US Department of Transportation, as collected in the package vega-datasets.
    """
    parquet = optional("pyarrow.parquet", "tables")
    path = find("flights_3m.parquet")
    with undamaged(path, "a data set", DAMAGED):
        table = parquet.read_table(path)
        columns = {name: table[name].to_numpy()[::every] for name in ("date", "delay", "distance")}
        places = [table[name].to_numpy()[::every].astype(str) for name in ("origin", "destination")]
    airports, codes = np.unique(np.concatenate(places), return_inverse=True)
    origin, destination = np.split(codes, 2)
    return Flights(
        columns["date"].astype("datetime64[m]"),
        columns["delay"].astype(float),
        columns["distance"].astype(float),
        origin,
        destination,
        airports,
    )
