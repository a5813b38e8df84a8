# SPDX-License-Identifier: MIT
"""The source documents' experiments, repeated with their own tool, beside their tables.

Rates of different machines are not compared. Shapes and ratios within a document are.
"""

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

from weir_lab.experiments import documents_abc, documents_de, published
from weir_lab.experiments.experiment import (
    InterruptedExperimentError,
    Options,
    environment,
    failures,
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
    all_at_once,
    kept,
    outcomes,
)
from weir_lab.report.page import Report
from weir_lab.rim import machine
from weir_lab.rim.errors import LabError
from weir_lab.rim.store import Store

FILES = {
    **published.C_FILES,
    **{f"{name}.bin": size for name, size in published.D_SIZES.items()},
    **dict.fromkeys(documents_de.E_FILES, 1000),
}
DOCUMENTS = (
    Document(
        letter="a",
        title="prefork",
        measure=all_at_once(documents_abc.a_steps),
        section=documents_abc.a_section,
    ),
    Document(
        letter="b",
        title="100,000 requests",
        measure=all_at_once(documents_abc.b_steps),
        section=documents_abc.b_section,
    ),
    Document(
        letter="c",
        title="event loop",
        measure=all_at_once(documents_abc.c_steps),
        section=documents_abc.c_section,
    ),
    Document(
        letter="d",
        title="fork and thread",
        measure=all_at_once(documents_de.d_steps),
        section=documents_de.d_section,
    ),
    Document(
        letter="e",
        title="users who think",
        measure=documents_de.e_measure,
        section=documents_de.e_section,
        needs="load",
    ),
)


def files() -> dict[str, bytes]:
    """The served files: incompressible bytes, the same in every run."""
    return {name: random.Random(name).randbytes(size) for name, size in FILES.items()}


def run(options: Options, letters: Sequence[str], scale: Scale) -> Report:
    """Repeats the documents of these letters, and reports.

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
        for document in chosen:
            try:
                document.measure(here, scale, store, partial(perform, store, what=document.title))
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


__all__ = ["FULL", "QUICK", "TINY", "TOUR", "run"]
