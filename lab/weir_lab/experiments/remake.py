# SPDX-License-Identifier: MIT
"""The report of existing results. Nothing is measured, and no server is needed."""

import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from weir_lab.experiments import (
    capacity,
    compare,
    pilot,
    reproduce,
    slow_disk,
    spread,
    sync,
    tour,
)
from weir_lab.experiments.experiment import Options, environment, failures
from weir_lab.report.page import Report, Section
from weir_lab.rim import store as stored
from weir_lab.rim.errors import LabError
from weir_lab.rim.machine import Placement
from weir_lab.rim.store import Store

Remake = Callable[[Store, Options], Report]
Question = TypeVar("Question")


def question_of(question: type[Question], plan: dict[str, Any], **others: object) -> Question:
    """The question that the plan was made from.

    Raises:
        LabError: the plan belongs to another version of weir-lab.
    """
    known = {f.name for f in fields(question)}  # type: ignore[arg-type]
    kept = {k: tuple(v) if isinstance(v, list) else v for k, v in plan.items() if k in known}
    try:
        return question(**{**others, **kept})
    except TypeError as error:
        raise LabError(f"the results are of another version of weir-lab: {error}") from error


def option(store: Store, name: str, default: str) -> str:
    """The value of an option in the command that measured, if it is not in the plan."""
    command = str(store.head["machine"].get("command", ""))
    found = re.search(rf"{name}[ =](\S+)", command)
    return found[1] if found else default


def of_compare(store: Store, _options: Options) -> Report:
    """The report of `compare`, also of models beside a slow disk."""
    if "slow_disk_ms" in store.head["plan"]:
        return slow_disk.report(store, question_of(slow_disk.Question, store.head["plan"]))
    return compare.report(store, question_of(compare.Question, store.head["plan"]))


def of_capacity(store: Store, options: Options) -> Report:
    """The report of `capacity`, with the training levels and limit of that command."""
    limit_ms = option(store, "--p99-ms", "")
    for_users = option(store, "--for-users", "")
    think_ms = option(store, "--for-think-ms", option(store, "--think-ms", "0"))
    question = question_of(
        capacity.Question,
        store.head["plan"],
        train_to=int(option(store, "--train-to", "0")),
        p99_limit_s=float(limit_ms) / 1e3 if limit_ms else None,
        need=capacity.need(
            int(for_users) if for_users else None,
            float(think_ms),
            float(limit_ms) if limit_ms else None,
        ),
    )
    if setup := pilot.known(store):
        question = replace(question, users=setup.users, train_to=setup.train_to)
    elif users := capacity.given(question):
        train_to = question.train_to or capacity.trained(users)
        question = replace(question, users=users, train_to=train_to)
    return whole(
        store, f"How much {question.server} carries", [capacity.section(store, options, question)]
    )


def of_reproduce(store: Store, options: Options) -> Report:
    """The report of `reproduce`."""
    letters = store.head["plan"]["documents"]
    return reproduce.report(store, options, [d for d in reproduce.DOCUMENTS if d.letter in letters])


def of_sync(store: Store, options: Options) -> Report:
    """The report of `sync`."""
    try:
        return sync.report(store, sync.question_of(store.head["plan"]), options.seed)
    except (KeyError, TypeError) as error:
        raise LabError(f"the results are of another version of weir-lab: {error}") from error


def of_spread(store: Store, _options: Options) -> Report:
    """The report of `spread`, with the training levels of that command."""
    train_to = option(store, "--train-to", "")
    return spread.report(
        store,
        is_open=store.head["plan"]["open"],
        train_to=int(train_to) if train_to else None,
    )[0]


def whole(
    store: Store, title: str, sections: Sequence[Section], notes: Sequence[str] = ()
) -> Report:
    """The parts that all reports share."""
    return Report(
        title=title,
        sections=sections,
        environment=environment(store),
        data=store.everything(),
        notes=[*notes, *failures(store)],
    )


REMAKE: dict[str, Remake] = {
    "compare": of_compare,
    "capacity": of_capacity,
    "reproduce": of_reproduce,
    "spread": of_spread,
    "sync": of_sync,
}


def placement(store: Store) -> Placement:
    """The cores of server and generator, from the plan."""
    said = str(store.head["plan"].get("placement", ""))
    if found := re.fullmatch(r"server on core (\d+), generator on core (\d+)", said):
        return Placement(server=int(found[1]), generator=int(found[2]))
    shared = re.search(r"share (\d+) cores", said)
    cores = int(shared[1]) if shared else 1 if "share one core" in said else 0
    return Placement(server=None, generator=None, shared_cores=cores)


def one(folder: Path) -> Report:
    """The report of one command's results."""
    store = stored.load(folder)
    command = str(store.head["plan"].get("command"))
    if command not in REMAKE:
        raise LabError(
            f"{folder}: there is no report of {command!r} results, only of {', '.join(REMAKE)}"
        )
    try:
        options = Options(
            build=Path("build"),
            out=folder,
            seed=int(store.head["plan"].get("seed", 1)),
            placement=placement(store),
        )
        return REMAKE[command](store, options)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise LabError(
            f"{store.path} is damaged, or of another version of weir-lab: {error!r}"
        ) from error


def run(folder: Path) -> Report:
    """The report of a folder: of one command, or of all commands of a tour.

    Raises:
        LabError: the folder has no results that can be read.
    """
    if (folder / stored.FILE).exists():
        report = one(folder)
        shared = folder / "sync"
        if (shared / stored.FILE).exists():
            return reproduce.with_sync(report, one(shared))
        return report
    parts = {name: folder / name for name in REMAKE if (folder / name / stored.FILE).exists()}
    if not parts:
        raise LabError(f"{folder} has no {stored.FILE}")
    return tour.together({name: one(path) for name, path in parts.items()}, [])
