# SPDX-License-Identifier: MIT
"""The source documents' experiments, repeated with their own tool, beside their tables.

Rates of different machines are not compared. Shapes and ratios within a document are.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from weir_lab.experiments import documents_abc, documents_de, published
from weir_lab.experiments.experiment import (
    InterruptedExperimentError,
    Options,
    announce,
    environment,
    failures,
    minutes,
    perform,
    store_for,
    world,
)
from weir_lab.experiments.reproduction import (
    FULL,
    QUICK,
    TINY,
    TOUR,
    Document,
    Scale,
    kept,
    outcomes,
    planned,
)
from weir_lab.report.page import Report
from weir_lab.rim import machine
from weir_lab.rim.errors import LabError
from weir_lab.rim.runs import World
from weir_lab.rim.store import Store

FILES = {
    **published.C_FILES,
    **{f"{name}.bin": size for name, size in published.D_SIZES.items()},
    **dict.fromkeys(documents_de.E_FILES, 1000),
}
DOCUMENTS = (
    planned(
        letter="a",
        title="prefork",
        steps=documents_abc.a_steps,
        section=documents_abc.a_section,
    ),
    planned(
        letter="b",
        title="100,000 requests",
        steps=documents_abc.b_steps,
        section=documents_abc.b_section,
    ),
    planned(
        letter="c",
        title="event loop",
        steps=documents_abc.c_steps,
        section=documents_abc.c_section,
    ),
    planned(
        letter="d",
        title="fork and thread",
        steps=documents_de.d_steps,
        section=documents_de.d_section,
    ),
    Document(
        letter="e",
        title="users who think",
        measure=documents_de.e_measure,
        section=documents_de.e_section,
        expected_s=documents_de.e_expected_s,
        needs="load",
    ),
)


def files() -> dict[str, bytes]:
    """The served files: incompressible bytes, the same in every run."""
    return {name: random.Random(name).randbytes(size) for name, size in FILES.items()}


def announce_plan(here: World, chosen: Sequence[Document], scale: Scale, then_s: float) -> float:
    """Says what will be measured and for how long. Returns the seconds of all of it."""
    each = {f"{d.letter} ({d.title})": d.expected_s(here, scale) for d in chosen}
    each |= {"sync": then_s} if then_s else {}
    parts = ", ".join(f"{what} {minutes(seconds)}" for what, seconds in each.items())
    announce(f"reproduce takes about {minutes(sum(each.values()))}: {parts}.")
    return sum(each.values())


def run(options: Options, letters: Sequence[str], scale: Scale, then_s: float = 0.0) -> Report:
    """Repeats the documents of these letters, and reports.

    `then_s` is the time of the experiments that follow, for the display.

    Raises:
        LabError: a program that they need is missing.
    """
    chosen = [d for d in DOCUMENTS if d.letter in letters]
    if unknown := set(letters) - {d.letter for d in DOCUMENTS}:
        raise LabError(f"no document {', '.join(sorted(unknown))}; there are a, b, c, d and e")
    if any(d.needs == "ab" for d in chosen):
        machine.need("ab")
    plan: dict[str, Any] = {
        "command": "reproduce",
        "documents": sorted(letters),
        "scale": scale.__dict__,
        "placement": options.placement.sentence(),
    }
    store = store_for(options, plan, "ab")
    skipped = []
    with world(options, files()) as here:
        left_s = announce_plan(here, chosen, scale, then_s)
        for document in chosen:
            left_s -= document.expected_s(here, scale)
            do = partial(perform, store, what=document.title, then_s=left_s)
            try:
                document.measure(here, scale, store, do)
            except InterruptedExperimentError:
                raise
            except LabError as error:
                if len(chosen) == 1:
                    raise
                skipped.append(f"{document.letter} was left out: {error}")
    return report(store, options, chosen, skipped)


def report(
    store: Store, options: Options, documents: Sequence[Document], skipped: Sequence[str] = ()
) -> Report:
    """The report of existing results, with a card for each document that has some."""
    sections = [d.section(store, options) for d in documents if any(kept(store, f"{d.letter}/"))]
    return Report(
        title="The source documents' experiments, repeated",
        headline=outcomes(sections) if len(sections) > 1 else None,
        sections=sections,
        environment=environment(store),
        data=store.everything(),
        notes=[
            "Rates of different machines are not compared; shapes and ratios are.",
            *skipped,
            *failures(store),
        ],
    )


def with_sync(report: Report, shared: Report) -> Report:
    """Both reports as one: the documents, then shared counters and caches."""
    return replace(
        report,
        sections=[*report.sections, *shared.sections],
        data={"reproduce": report.data, "sync": shared.data},
        notes=[*report.notes, *(note for note in shared.notes if note not in report.notes)],
    )


__all__ = ["FULL", "QUICK", "TINY", "TOUR", "run", "with_sync"]
