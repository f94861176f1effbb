"""Geo-indistinguishability: planar Laplace noise (Andrés et al., CCS 2013)."""

import hashlib
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from promesse_geo import threads
from promesse_geo.kernels import laplace
from promesse_geo.mechanisms.base import Mechanism
from promesse_geo.traces.traces import Traces, freeze
from promesse_geo.validation import check_number, check_seed, key_of, set_fields

_BLOCKS = 1 << 18  # records drawn at a time: their random blocks stay in the cache


@dataclass(frozen=True)
class GeoIndistinguishability(Mechanism):
    """Move every record by planar Laplace noise, independently.

    Two places at most r metres apart give any published location with probabilities that differ by a factor of
    exp(epsilon · r) at most. The mean move is 2/epsilon metres. Times and numbers of records stay.

    What that is worth for a trace: the guarantee is for one record. For a trace of n records it is n · epsilon, which
    for a night at home is no guarantee at all: the noise averages out, and places where people stay can be found
    again (paper, Table II).

    Parameters
    ----------
    epsilon : float
        Level in 1/metre, from 3e-6 (below, moves could go round the globe) to 10; smaller is noisier. The paper takes
        ln(10)/100, ln(6)/200, ln(4)/200 and ln(2)/200; see `from_level`.
    grid : float, optional
        Round published locations to a grid of about this many metres, after the noise. Locations are floating-point
        numbers of which not all can be reached from every true place, so that low-order digits can rule places out;
        a grid coarse against those digits (a centimetre is enough) takes that away, at no cost in privacy.
    seed : int or str, optional
        Makes the noise repeatable, for experiments only: whoever guesses the seed takes the noise off again. By
        default a fresh 256-bit key comes from the operating system for each call. The seed shows in no repr and no
        file that we write; what copies the whole object (pickle, dataclasses.asdict) copies it.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of its range.

    Notes
    -----
    Direction and distance of a record come from AES-256 of a block that holds a hash of (user, the trace's first
    time, epsilon, grid) and the record's number in its trace. So the same seed gives the same output whatever the
    order of users, the threads or the partitioning; and two levels with one seed share no draws, which would give
    the true place away. Draws have 42 bits: no move exceeds 60/epsilon, and the exact guarantee of real numbers
    holds but for a chance of 2⁻⁴⁰ or so per record.

    References
    ----------
    Andrés, Bordenabe, Chatzikokolakis, Palamidessi: Geo-Indistinguishability: Differential Privacy for
    Location-Based Systems. CCS 2013.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, as_traces=True)
    >>> pg.GeoIndistinguishability.from_level(4, radius=200).protect(city).records == city.records
    True
    """

    units: ClassVar[Mapping[str, str]] = {"epsilon": "1/m"}

    epsilon: float
    grid: float | None = field(default=None, kw_only=True)
    seed: int | str | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        """Check the parameters."""
        owner = "GeoIndistinguishability"
        epsilon = check_number(self.epsilon, name="epsilon", owner=owner, unit="1/metre", low=3e-6, high=10)
        grid = self.grid
        if grid is not None:
            grid = check_number(grid, name="grid", owner=owner, unit="metres", low=1e-3, high=1e6)
        set_fields(self, {"epsilon": epsilon, "grid": grid, "seed": check_seed(self.seed, owner=owner)})

    @classmethod
    def from_level(
        cls, level: float, *, radius: float, grid: float | None = None, seed: int | str | None = None
    ) -> "GeoIndistinguishability":
        """Make the mechanism for which places within `radius` metres differ by a factor of `level` at most.

        Parameters
        ----------
        level : float
            Factor above 1 between the probabilities.
        radius : float
            Metres.
        grid, seed
            As for the class.

        Returns
        -------
        GeoIndistinguishability
            With epsilon = ln(level)/radius.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> round(2 / pg.GeoIndistinguishability.from_level(4, radius=200).epsilon)
        289
        """
        owner = "GeoIndistinguishability.from_level"
        radius = check_number(radius, name="radius", owner=owner, unit="metres")
        level = check_number(level, name="level", owner=owner, unit="times", low=1 + 1e-9)
        return cls(math.log(level) / radius, grid=grid, seed=seed)

    def _protect(self, traces: Traces) -> Traces:
        cipher = Cipher(algorithms.AES256(key_of(self.seed, "noise")), modes.ECB())  # of distinct blocks
        names = np.array([self._name(user, first) for user, first in _firsts(traces)], np.uint32).reshape(-1, 3)
        move = laplace.move_on_sphere if traces.space.curvature else laplace.move_in_plane
        step = 1.0 / (self.epsilon * traces.space.scale)
        out = np.empty_like(traces.points)

        def move_all(begin: int, end: int) -> None:
            encryptor = cipher.encryptor()
            blocks = np.empty((min(_BLOCKS, end - begin), 4), np.uint32)
            room = bytearray(blocks.nbytes + 15)
            for first in range(begin, end, _BLOCKS):
                last = min(first + _BLOCKS, end)
                laplace.label(names, traces.offsets, first, last, blocks)
                size = encryptor.update_into(blocks[: last - first].data.cast("B"), room)
                words = np.frombuffer(room, np.uint64, size // 8).reshape(-1, 2)
                move(traces.points[first:last], words, step, out[first:last])

        threads.run(move_all, threads.even(traces.records))
        moved = replace(traces, points=freeze(out), positions=freeze(np.arange(traces.records)))
        return moved if self.grid is None else replace(moved, points=freeze(moved.space.snap(moved.points, self.grid)))

    def _name(self, user: object, first: int) -> np.ndarray:
        """96 bits that stand for a trace at this level."""
        grid = -1.0 if self.grid is None else self.grid
        message = struct.pack("<qdd", first, self.epsilon, grid) + str(user).encode()
        return np.frombuffer(hashlib.blake2b(message, digest_size=12).digest(), np.uint32)


def _firsts(traces: Traces) -> list[tuple[object, int]]:
    """The user and the first time of each trace."""
    return list(zip(traces.users.tolist(), traces.times[traces.offsets[:-1]].tolist(), strict=True))
