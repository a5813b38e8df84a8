# SPDX-License-Identifier: MIT
"""All experiments briefly, in five minutes and one report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from weir_lab.experiments import capacity, compare, parse, reproduce, reproduction, sync
from weir_lab.experiments.experiment import Options, announce
from weir_lab.report.page import Headline, Report, Section, write
from weir_lab.rim import runs
from weir_lab.rim.errors import LabError

TRAIN_TO = 20
ORDER = ("reproduce", "capacity", "compare", "sync", "spread")  # of the cards


def _capacity(options: Options, *, tiny: bool) -> Report:
    """A small sweep: trained on up to 20 users, judged on 25 to 60."""
    by_load = runs.has_load(options.build / "weir")
    question = capacity.Question(
        server="thread" if by_load else "fork",
        users=parse.levels("1,4,8,20,40" if tiny else "1,2,4,6,8,10,12,14,16,18,20,25..60:5"),
        train_to=TRAIN_TO,
        seconds=1.0,
        repeats=1 if tiny else 2,
        keep_alive=False,
        generator="load" if by_load else "ab",
    )
    return capacity.run(options, question)


def _compare(options: Options, *, tiny: bool) -> Report:
    names = ("epoll", "percore") if tiny else ("epoll", "percore", "pool", "thread")
    return compare.run(
        options,
        compare.Question(
            servers=names,
            rounds=3 if tiny else 4,
            keep_alive=(True,) if tiny else (True, False),
            generator="load" if runs.has_load(options.build / "weir") else "ab",
        ),
    )


def run(options: Options, *, tiny: bool = False) -> Report:
    """Runs all experiments briefly; one that fails is left out with a note."""
    scale = reproduce.TINY if tiny else reproduce.TOUR
    parts: dict[str, Callable[[Options], Report]] = {
        "reproduce": lambda o: reproduce.run(o, ["c"] if tiny else list("abcde"), scale),
        "compare": lambda o: _compare(o, tiny=tiny),
        "capacity": lambda o: _capacity(o, tiny=tiny),
        "sync": lambda o: sync.run(
            o, sync.question(quick=True, parts=("counters",) if tiny else sync.PARTS, seed=o.seed)
        ),
    }
    reports: dict[str, Report] = {}
    left_out: list[str] = []
    for name, experiment in parts.items():
        try:
            reports[name] = experiment(replace(options, out=options.out / name))
        except LabError as error:
            if type(error) is not LabError:
                raise
            announce(f"{name} is left out: {error}")
            left_out.append(f"{name} is left out: {error}")
            continue
        # Each experiment has a report of its own beside its results, too.
        write(reports[name], options.out / name)
    return together(reports, left_out)


def together(reports: Mapping[str, Report], left_out: Sequence[str]) -> Report:
    """The reports of several commands as one page of cards."""
    notes = ["A first impression: for figures, run the command of each experiment.", *left_out]
    for report in reports.values():
        notes += [note for note in report.notes if note not in notes]
    environments = [dict(report.environment) for report in reports.values()]
    ordered = sorted(reports.items(), key=lambda each: ORDER.index(each[0]))
    sections = [section for _, report in ordered for section in report.sections]
    swept = reports["capacity"].sections[0] if "capacity" in reports else None
    if swept:  # its picture is that of the whole page
        alone = replace(swept, headline=replace(swept.headline, pictures=()))
        sections = [alone if section is swept else section for section in sections]
    documents = reports["reproduce"].sections if "reproduce" in reports else []
    return Report(
        title="A tour of weir-lab",
        headline=headline(documents, swept),
        sections=sections,
        environment=environments[0] if environments else {},
        data={name: report.data for name, report in reports.items()},
        notes=notes,
    )


def headline(documents: Sequence[Section], swept: Section | None) -> Headline:
    """The answer of the tour: how many documents work here, and the forecast."""
    said = reproduction.outcomes(documents).sentence
    return Headline(
        sentence=f"{said} {swept.headline.sentence}" if swept else said,
        mark=swept.headline.mark if swept else None,
        numbers=swept.headline.numbers if swept else (),
        title=swept.headline.title if swept else "",
        pictures=swept.headline.pictures if swept else (),
        caption=swept.headline.caption if swept else "",
    )
