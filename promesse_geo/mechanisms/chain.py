"""Mechanisms one after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from promesse_geo.mechanisms.base import Mechanism, mechanism_classes
from promesse_geo.mechanisms.privacy_zones import PrivacyZones
from promesse_geo.mechanisms.zones import PlacedZones
from promesse_geo.messages import Remark, collected_warnings, invalid, remarks_of
from promesse_geo.traces.traces import Traces, freeze
from promesse_geo.validation import set_fields


@dataclass(frozen=True, repr=False)
class Chain(Mechanism):
    """Apply mechanisms one after the other, each to what the one before returned.

    Zones of `PrivacyZones` are applied again to the end result, so that no published point lies in one, and no line
    between two published points of a segment crosses one, whatever the mechanisms in between do. Zones that follow each
    other find places in the same data, whatever their order: the edges of one are no ends of traces for the next.

    Parameters
    ----------
    mechanisms : sequence of Mechanism
        One or more mechanisms, in the order in which they are applied. Each has its own seed. `evaluate` and
        `with_seed` give each member that is random a seed of its own.

    Raises
    ------
    TypeError, ValueError
        If it is no sequence of mechanisms, or empty.

    Notes
    -----
    What is guaranteed of ends and places is what each member guarantees of its own input.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> zones = pg.PrivacyZones(600, 500, seed="draw this secret with secrets.token_hex")
    >>> chain = pg.Chain([zones, pg.Promesse(200)])
    >>> [type(member).__name__ for member in chain.mechanisms]
    ['PrivacyZones', 'Promesse']
    >>> import warnings
    >>> city = pg.make_city(users=3, days=3, recorder="phone")
    >>> parts = city.promesse.prepare(tz="Europe/Paris", keep_user=True)
    >>> with warnings.catch_warnings():  # it counts what was removed
    ...     warnings.simplefilter("ignore")
    ...     safe = chain.protect(parts)
    >>> list(safe.columns)
    ['user', 'time', 'segment', 'geometry']
    """

    keeps_breaks: ClassVar[bool] = True

    mechanisms: Sequence[Mechanism]

    def __post_init__(self) -> None:
        """Check the members; chains among them are replaced by their members."""
        rule, given = "one or more mechanisms, such as [pg.PrivacyZones(), pg.Promesse(200)]", self.mechanisms
        if isinstance(given, str | bytes) or not isinstance(given, Sequence):
            raise TypeError(invalid("mechanisms", "Chain", rule, given))
        members = [_from_description(each, rule) if isinstance(each, Mapping) else each for each in given]
        if not all(isinstance(member, Mechanism) for member in members):
            wrong = next((member for member in members if isinstance(member, type)), given)
            raise TypeError(invalid("mechanisms", "Chain", rule, wrong))
        if not members:
            raise ValueError(invalid("mechanisms", "Chain", rule, given))
        flat = [each for member in members for each in (member.mechanisms if isinstance(member, Chain) else [member])]
        remedies = dict.fromkeys(member.remedy for member in flat if member.remedy)
        kinds = {
            "makes_breaks": any(member.makes_breaks for member in flat),
            "is_per_user": all(member.is_per_user for member in flat),
            "units": {name: unit for member in flat for name, unit in member.units.items()},
        }
        set_fields(self, {"mechanisms": tuple(flat), "remedy": " ".join(remedies), **kinds})

    def __repr__(self) -> str:
        """Return an expression that makes the chain but for seeds and zones."""
        return f"Chain([{', '.join(map(repr, self.mechanisms))}])"

    def parameters(self) -> dict[str, Any]:
        """Return the descriptions of the members, without seeds and zones."""
        return {"mechanisms": [member.description() for member in self.mechanisms]}

    def settings(self) -> dict[str, Any]:
        """Return the parameters of members that `with_parameter` can change: those that one member alone has."""
        names = [name for member in self.mechanisms for name in member.settings()]
        each = {name: value for member in self.mechanisms for name, value in member.settings().items()}
        return {name: value for name, value in each.items() if names.count(name) == 1}

    def with_parameter(self, name: str, value: Any) -> Self:
        """Return the chain with another value of the parameter of a member, one of `settings`."""
        members = [
            member.with_parameter(name, value) if name in member.settings() else member for member in self.mechanisms
        ]
        return replace(self, mechanisms=members)

    @property
    def is_random(self) -> bool:
        """Whether a member is random."""
        return any(member.is_random for member in self.mechanisms)

    def with_seed(self, seed: int | str | None) -> Self:
        """Return the chain with a seed of its own for each member that is random, for repeatable experiments."""
        if seed is None or not self.is_random:
            return self
        members = [member.with_seed(f"{seed}/{number}") for number, member in enumerate(self.mechanisms)]
        return replace(self, mechanisms=members)

    def _protect(self, traces: Traces) -> tuple[Traces, list[Remark]]:
        current, zones, remarks = traces, list[PlacedZones](), list[Remark]()
        seen = traces  # in which zones find places: not in what other zones left, whose edges look like ends
        for member in self.mechanisms:
            if isinstance(member, PrivacyZones):
                zones.append(member.place(seen))
                current, remark = member.cut(current, zones[-1])
                remarks.append(remark)
                continue
            with collected_warnings() as collected:
                current = seen = member.protect(current)
            remarks += [remark for warning in collected for remark in remarks_of(warning)]
        for placed in zones:
            current = placed.cut(current)
        current = replace(current, positions=freeze(np.arange(current.records)))
        return current, remarks


def _from_description(description: Mapping[str, Any], rule: str) -> Mechanism:
    """Return a member as `parameters` describes it; raise ValueError for any other mapping."""
    kind = mechanism_classes().get(description.get("mechanism", ""))
    parameters = description.get("parameters")
    try:
        if kind is None or not isinstance(parameters, Mapping):
            raise TypeError
        return kind(**parameters)
    except TypeError:
        raise ValueError(invalid("mechanisms", "Chain", rule, description)) from None
