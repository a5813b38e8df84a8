# SPDX-License-Identifier: MIT
"""The choice of a model, or the refusal to predict, from the training points alone.

The rule is fixed before anything is measured. Of the mechanisms, the one with the least AICc of
relative errors is chosen. A model that uses measured service demand ("anchored") is not misled by
a few bad points. So it gives way only to a model whose AICc is better by more than 10 (Burnham and
Anderson). When the training points end before the knee, a curve fitted to them knows nothing of
the knee. Then only anchored models can be chosen.

A mechanism is chosen, and its misfit is judged, as it was fitted. Its prediction is moved towards
the measurements at the highest training loads (curves.levelled).

docs/decisions/017 judges this rule on simulated servers of many kinds, never on a single server.
"""

from dataclasses import dataclass, replace

import numpy as np

from weir_lab.capacity.bootstrap import Ensemble, ensemble
from weir_lab.capacity.curves import (
    MECHANISM,
    MODELS,
    CannotFitError,
    Fitted,
    Model,
    levelled,
)
from weir_lab.capacity.score import Score, score
from weir_lab.capacity.sweep import Sweep, why_void

LEVELS_MIN = 3
KNEE_EFFICIENCY = 0.85  # of the first level's throughput per user; below, the knee has begun
VOID_SHARE_MAX = 0.25
SCATTER_MAX = 0.25  # standard deviation of one measurement
AICC_BEYOND_DOUBT = 10.0
MISFIT_MAX = 0.15  # of the chosen model on its own training points


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A model that could be fitted, or why it could not."""

    model: Model
    ensemble: Ensemble | None
    aicc: float
    misfit: float = float("inf")  # median relative error on its own training points
    why_not: str = ""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The candidates, the chosen one, and the reason against extrapolating, if any."""

    training: Sweep
    candidates: tuple[Candidate, ...]
    chosen: Candidate | None
    knee_seen: bool
    refusal: str  # one sentence; empty when the data support a prediction

    def of(self, name: str) -> Candidate:
        """The candidate of that name."""
        return next(c for c in self.candidates if c.model.name == name)


def aicc(sweep: Sweep, fitted: Fitted) -> float:
    """Akaike's criterion, corrected for few points, of normal relative errors."""
    predicted = fitted.predict(sweep.users)
    if not np.all(np.isfinite(predicted)) or np.any(predicted <= 0):
        return float("inf")
    count, parameters = len(predicted), fitted.fitted + 1
    if count <= parameters + 1:
        return float("inf")
    squares = float(np.mean((sweep.rates / predicted - 1) ** 2)) + 1e-12
    penalty = 2 * parameters + 2 * parameters * (parameters + 1) / (count - parameters - 1)
    return count * float(np.log(squares)) + penalty


def has_seen_the_knee(sweep: Sweep) -> bool:
    """Whether throughput per user has clearly fallen at both of the last two levels."""
    if len(sweep.levels) < 2:
        return False
    first, *others = [
        float(np.median([p.rate / p.users for p in sweep.points if p.users == level]))
        for level in sweep.levels
    ]
    return max(others[-2:]) < KNEE_EFFICIENCY * first


def without_void(sweep: Sweep) -> Sweep:
    """The valid points."""
    kept = [p for p in sweep.points if not why_void(sweep, p)]
    return Sweep(points=kept, think_s=sweep.think_s, servers=sweep.servers)


def choose(sweep: Sweep, *, draws: int = 200, seed: int = 1, doubt: str = "") -> Choice:
    """Fits every candidate to the training points and chooses.

    `doubt` is a reason of the caller's against extrapolating, in one sentence, or empty.
    """
    training = without_void(sweep)
    seen = has_seen_the_knee(training)
    candidates = tuple(_candidate(model, training, draws, seed) for model in MODELS)
    eligible = [
        c
        for c in candidates
        if c.ensemble and c.model.kind == MECHANISM and (seen or c.model.anchored)
    ]
    chosen = min(
        eligible,
        key=lambda c: c.aicc - (AICC_BEYOND_DOUBT if c.model.anchored else 0.0),
        default=None,
    )
    return Choice(
        training=training,
        candidates=candidates,
        chosen=chosen,
        knee_seen=seen,
        refusal=doubt or _refusal(sweep, training, chosen, seen=seen),
    )


def _candidate(model: Model, training: Sweep, draws: int, seed: int) -> Candidate:
    try:
        if not training.points:
            raise CannotFitError("there is no valid point")
        plain = model.fit(training)
        predicts = model
        if model.kind == MECHANISM:
            predicts = replace(model, fit=lambda sweep: levelled(model.fit(sweep), sweep))
        found = ensemble(predicts, training, draws=draws, seed=seed)
    except CannotFitError as error:
        return Candidate(model=model, ensemble=None, aicc=float("inf"), why_not=str(error))
    misfit = float(np.median(np.abs(training.rates / plain.predict(training.users) - 1)))
    return Candidate(model=model, ensemble=found, aicc=aicc(training, plain), misfit=misfit)


def _refusal(sweep: Sweep, training: Sweep, chosen: Candidate | None, *, seen: bool) -> str:
    void = len(sweep.points) - len(training.points)
    if void > VOID_SHARE_MAX * len(sweep.points):
        why = next(filter(None, (why_void(sweep, p) for p in sweep.points)))
        return f"{void} of {len(sweep.points)} training points are void: {why}."
    if len(training.levels) < LEVELS_MIN:
        return f"{len(training.levels)} levels of load are too few; {LEVELS_MIN} are needed."
    if not seen and not training.has_demand():
        last = training.levels[-1]
        return (
            f"Throughput grows up to {last} users: the knee has not been seen. The server's CPU "
            "per request is not known either, so the knee cannot be predicted."
        )
    if chosen is None or chosen.ensemble is None:
        return "No model could be fitted to the training points."
    spread = float(np.std(chosen.ensemble.scatter))
    if spread > SCATTER_MAX:
        return (
            f"Repeated measurements of one level differ by {spread:.0%} (standard deviation). "
            "That is too noisy to predict from."
        )
    if chosen.misfit > max(MISFIT_MAX, 2 * spread):
        return (
            f"The best of the models is off by {chosen.misfit:.0%} on the points that it was "
            "fitted to. No model describes this server."
        )
    return ""


def score_all(choice: Choice, held_out: Sweep) -> dict[str, Score]:
    """Scores every candidate on points that no candidate has seen."""
    users, measured = held_out.users, held_out.rates
    return {
        c.model.name: score(c.ensemble.fitted.predict(users), c.ensemble.rate(users), measured)
        for c in choice.candidates
        if c.ensemble and len(users)
    }
