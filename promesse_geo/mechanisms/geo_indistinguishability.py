"""Geo-indistinguishability: planar Laplace noise (Andrés et al., CCS 2013)."""

import hashlib
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from promesse_geo import threads
from promesse_geo.kernels import laplace
from promesse_geo.mechanisms.base import Mechanism
from promesse_geo.messages import invalid
from promesse_geo.traces.space import Space
from promesse_geo.traces.traces import Traces, freeze
from promesse_geo.validation import check_number, check_seed, is_number, key_of, set_fields

_BLOCKS = 1 << 18  # records drawn at a time: their random blocks stay in the cache


@dataclass(frozen=True)
class GeoIndistinguishability(Mechanism):
    """Move every record independently by planar Laplace noise.

    For two places at most r metres apart, the probabilities of any published location differ by a factor of at most
    exp(epsilon · r). The mean displacement is 2/epsilon metres. Times and the number of records do not change.

    The guarantee is for a single record. For a trace of n records it is n · epsilon, which is no guarantee for a night
    at home: the noise averages out, and places where people stay can be found again (paper, Table II).

    Parameters
    ----------
    epsilon : float
        Level in 1/metre, from 3e-6 to 10; smaller is noisier. The paper uses ln(10)/100, ln(6)/200, ln(4)/200 and
        ln(2)/200; see `from_level`.
    grid : float, optional
        Round published locations to a grid of about this many metres, after adding the noise. Not every
        floating-point location can be reached from every true place, so that the last digits can rule places out; a
        grid (a centimetre is enough) prevents that, at no cost in privacy.
    seed : int or str, optional
        Makes the noise repeatable, for experiments only: anyone who guesses the seed can subtract the noise. By default
        each call takes a new 256-bit key from the operating system. No repr and no written file contains the seed,
        but copies of the object (pickle, dataclasses.asdict) do.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    Notes
    -----
    Direction and distance of a record come from AES-256 of a block with a hash of (user, first time of the trace,
    epsilon, grid) and the record's position in its trace. So the same seed gives the same output for any order of
    users, number of threads and partitioning, and two levels with one seed share no random numbers, which would
    reveal the true place. Random numbers have 42 bits: no displacement exceeds 60/epsilon, and the guarantee for
    real numbers holds except with a probability of about 2⁻⁴⁰ per record.

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

    keeps_periods: ClassVar[bool] = True
    units: ClassVar[Mapping[str, str]] = {"epsilon": "1/m", "grid": "m"}

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
        """Make the mechanism with probabilities that differ by a factor of at most `level` within `radius` metres.

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
        if not is_number(level) or not 1 < level < math.inf:
            kind = ValueError if is_number(level) else TypeError
            raise kind(invalid("level", owner, "a finite factor above 1", level))
        level = check_number(level, name="level", owner=owner, unit="times", low=1)
        return cls(math.log(level) / radius, grid=grid, seed=seed)

    def _protect(self, traces: Traces) -> Traces:
        cipher = _cipher(self.seed)
        names = self._names(traces)
        out = np.empty_like(traces.points)

        def move_all(begin: int, end: int) -> None:
            encryptor = cipher.encryptor()
            blocks = np.empty((min(_BLOCKS, end - begin), 4), np.uint32)
            buffer = bytearray(blocks.nbytes + 15)
            for first in range(begin, end, _BLOCKS):
                last = min(first + _BLOCKS, end)
                laplace.label_records(names, traces.offsets, first, last, blocks)
                size = encryptor.update_into(blocks[: last - first].data.cast("B"), buffer)
                words = np.frombuffer(buffer, np.uint64, size // 8).reshape(-1, 2)
                self._move(traces.points[first:last], words, traces.space, out[first:last])

        threads.run(move_all, threads.even(traces.records))
        points = freeze(self._snap(out, traces.space))
        return replace(traces, points=points, positions=freeze(np.arange(traces.records)))

    def points_with_seeds(self, traces: Traces, seeds: Iterable[int | str]) -> np.ndarray:
        """Return the points that each of many seeds gives, for few records.

        Parameters
        ----------
        traces : Traces
            Original data.
        seeds : iterable of int or str
            Used in place of the mechanism's own seed.

        Returns
        -------
        numpy.ndarray
            Shape (seeds, records, dimension): unit vectors on the sphere, metres in the plane.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, as_traces=True)
        >>> pg.GeoIndistinguishability(0.01).points_with_seeds(city, range(5)).shape == (5, city.records, 3)
        True
        """
        blocks = np.empty((traces.records, 4), np.uint32)
        laplace.label_records(self._names(traces), traces.offsets, 0, traces.records, blocks)
        drawn = [_cipher(seed).encryptor().update(blocks.tobytes()) for seed in seeds]
        words = np.frombuffer(b"".join(drawn), np.uint64).reshape(-1, 2)
        out = np.empty((len(words), traces.points.shape[1]))
        self._move(np.tile(traces.points, (len(drawn), 1)), words, traces.space, out)
        return self._snap(out, traces.space).reshape(len(drawn), traces.records, -1)

    def _move(self, points: np.ndarray, words: np.ndarray, space: Space, out: np.ndarray) -> None:
        """Write points moved by noise from random bits, two words of 64 bits a record."""
        move = laplace.move_on_sphere if space.curvature else laplace.move_in_plane
        move(points, words, 1.0 / (self.epsilon * space.scale), out)

    def _snap(self, points: np.ndarray, space: Space) -> np.ndarray:
        """Round moved points to the grid, if there is one."""
        return points if self.grid is None else space.snap(points, self.grid)

    def _names(self, traces: Traces) -> np.ndarray:
        """96 bits for each trace that identify it at this level, uint32, shape (traces, 3)."""
        grid = -1.0 if self.grid is None else self.grid
        firsts = zip(traces.users.tolist(), traces.times[traces.offsets[:-1]].tolist(), strict=True)
        messages = [struct.pack("<qdd", first, self.epsilon, grid) + str(user).encode() for user, first in firsts]
        digests = [hashlib.blake2b(message, digest_size=12).digest() for message in messages]
        return np.frombuffer(b"".join(digests), np.uint32).reshape(-1, 3)


def _cipher(seed: int | str | None) -> Cipher:
    """Cipher of the noise: AES-256 of distinct blocks."""
    return Cipher(algorithms.AES256(key_of(seed, "noise")), modes.ECB())
