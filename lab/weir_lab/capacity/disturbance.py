# SPDX-License-Identifier: MIT
"""Which runs lost too much CPU to be compared with the others of a sweep.

A virtual machine loses its cores when the hypervisor runs another machine on them. Other processes
take CPU as well. A loss that all runs share makes the machine slower, which is no fault of a run.
So a run is disturbed when it lost more than the calmest quarter of the runs, by more than a limit.

Records without a measured loss, of older versions or of other systems, are never disturbed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# A server that loses 5 % of its core loses 5 % of its throughput. Undisturbed runs differ by less.
STOLEN_MAX = 0.05
# The kernel samples at each tick who uses a core: 2 % is the standard error in two seconds.
FOREIGN_MAX = 0.10
CALM = 0.25  # of the runs
CALM_RUNS_MIN = 8  # fewer do not show what is usual here
USUAL_NOTED = 0.02

Record = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Lost:
    """Shares of the time of a core, at the core that lost most."""

    stolen: float = 0.0  # by the hypervisor
    foreign: float = 0.0  # by other processes


def lost(record: Record) -> Lost:
    """The loss of a run; nothing where it was not measured."""
    groups = record.get("lost") or []
    return Lost(
        stolen=max((g["stolen"] or 0.0 for g in groups), default=0.0),
        foreign=max((g["foreign"] or 0.0 for g in groups), default=0.0),
    )


def usual(records: Iterable[Record]) -> Lost:
    """The loss that the calmest quarter of the runs does not exceed."""
    found = [lost(r) for r in records if r.get("lost")]
    if len(found) < CALM_RUNS_MIN:
        return Lost()
    return Lost(
        stolen=float(np.quantile([each.stolen for each in found], CALM)),
        foreign=float(np.quantile([each.foreign for each in found], CALM)),
    )


def reason(record: Record, calm: Lost) -> str:
    """The loss of a disturbed run as a clause; empty where the run is not disturbed."""
    here = lost(record)
    if here.stolen > calm.stolen + STOLEN_MAX:
        return f"the hypervisor took {here.stolen:.0%} of the CPU"
    if here.foreign > calm.foreign + FOREIGN_MAX:
        return f"other processes took {here.foreign:.0%} of the CPU"
    return ""


def most(records: Sequence[Record], calm: Lost) -> str:
    """The largest loss of disturbed runs as a clause, by its cause."""
    stolen = [each.stolen for each in map(lost, records)]
    foreign = [each.foreign for each in map(lost, records)]
    causes = []
    if max(stolen, default=0.0) > calm.stolen + STOLEN_MAX:
        causes.append(f"the hypervisor took up to {max(stolen):.0%} of the CPU")
    if max(foreign, default=0.0) > calm.foreign + FOREIGN_MAX:
        causes.append(f"other processes took up to {max(foreign):.0%} of the CPU")
    return " and ".join(causes)


def discarded(record: Record) -> list[Record]:
    """The runs that the record replaced; each has its own `lost`."""
    return list(record.get("again", []))


def sentences(records: Sequence[Record]) -> list[str]:
    """For the report: the runs that were measured again, and a loss that all runs share."""
    good = [r for r in records if "error" not in r]
    calm = usual(good)
    repeated = [r for r in good if discarded(r)]
    found = []
    if repeated:
        tried = [run for r in repeated for run in (r, *discarded(r))]
        count = f"{len(repeated)} of {len(good)} runs were"
        if len(repeated) == 1:
            count = f"1 of {len(good)} runs was"
        why = most(tried, calm) or "they lost more CPU than the other runs"
        found.append(f"{count} measured again, because {why}.")
    if calm.stolen > USUAL_NOTED:
        found.append(
            f"The hypervisor took {calm.stolen:.0%} of the CPU even in the calmest quarter of the "
            "runs. The figures are those of a machine that is slower by as much."
        )
    return found
