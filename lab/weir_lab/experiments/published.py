# SPDX-License-Identifier: MIT
"""The figures that the source documents published, and how they were measured."""

from dataclasses import dataclass

LITTLE_OFF = 0.05


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table: concurrency, rate, mean response time."""

    label: str
    users: int
    rate: float
    mean_ms: float | None = None

    @property
    def little_users(self) -> float | None:
        """The concurrency by Little's law: rate times mean time."""
        return None if self.mean_ms is None else self.rate * self.mean_ms / 1e3

    @property
    def contradiction(self) -> str:
        """How the row contradicts Little's law; empty where it does not."""
        there = self.little_users
        if there is None or abs(there / self.users - 1) <= LITTLE_OFF:
            return ""
        return (
            f"{self.label}: {self.rate:,.0f} requests per second of {self.mean_ms:g} ms each are "
            f"{there:.0f} at once, not {self.users}"
        )


CONCURRENCY_A = (10, 50, 100, 500, 1000)
A_CLOSE = tuple(
    Row(label=f"close, {n}", users=n, rate=rate, mean_ms=ms)
    for n, rate, ms in zip(
        CONCURRENCY_A,
        (31948.41, 31971.78, 31735.84, 26778.31, 21530.65),
        (0.313, 1.564, 3.151, 18.672, 46.445),
        strict=True,
    )
)
A_KEEP_ALIVE = tuple(
    Row(label=f"keep-alive, {n}", users=n, rate=rate, mean_ms=ms)
    for n, rate, ms in zip(
        CONCURRENCY_A,
        (21994.49, 20937.88, 21391.65, 19577.23, 19171.07),
        (0.455, 2.388, 4.675, 25.540, 52.162),
        strict=True,
    )
)

B_REQUESTS = 100_000
B_RESETS = (500, 1000)  # the document: sometimes reset with "500 or more"
B_KEEP_ALIVE = 100  # connections; the document says that keep-alive is not supported


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A line of document b: total seconds, rate, and connection times in ms."""

    users: int
    seconds: float
    rate: float
    mean_ms: float
    total: tuple[str, str, str, str, str]  # min mean sd median max


B = (
    Spread(
        users=10, seconds=17.332, rate=5769.73, mean_ms=1.733, total=("<0", "<2", "1.3", "1", "20")
    ),
    Spread(
        users=100,
        seconds=12.981,
        rate=7703.43,
        mean_ms=12.981,
        total=("2", "13", "6.5", "12", "104"),
    ),
    Spread(
        users=250,
        seconds=13.438,
        rate=7441.86,
        mean_ms=33.594,
        total=("3", "33", "142.1", "13", "2267"),
    ),
    Spread(
        users=450,
        seconds=13.944,
        rate=7171.63,
        mean_ms=62.747,
        total=("3", "61", "241.9", "14", "4377"),
    ),
)

C_FILES = {"index.html": 308, "style.css": 1092, "favicon.ico": 318}
C_REQUESTS, C_USERS = 10_000, 100
C = (
    Row(label="index.html", users=C_USERS, rate=140821, mean_ms=0.710),
    Row(label="style.css", users=C_USERS, rate=123344, mean_ms=0.811),
    Row(label="favicon.ico", users=C_USERS, rate=119104.32, mean_ms=0.084),
)
C_CLOSE_RATE, C_KEEP_ALIVE_RATE = 51105.0, 152935.0

D_REQUESTS = 10_000
D_SIZES = {"small": 1000, "big": 10000}
D_USERS = 10  # the command printed in it; its text also says 5
D = {
    ("fork", "small"): Row(label="fork, 1,000 bytes", users=D_USERS, rate=2030.59, mean_ms=9.849),
    ("fork", "big"): Row(label="fork, 10,000 bytes", users=D_USERS, rate=1814.62, mean_ms=11.022),
    ("thread", "small"): Row(
        label="thread, 1,000 bytes", users=D_USERS, rate=5874.33, mean_ms=3.405
    ),
    ("thread", "big"): Row(
        label="thread, 10,000 bytes", users=D_USERS, rate=5317.18, mean_ms=3.761
    ),
}
D_TRAINING = tuple(range(1, 21))
D_HELD_OUT = tuple(range(25, 61, 5))

E_THINK_S = 0.04
E_USERS, E_RATE, E_RESPONSE_S = 1100, 23507.0, 0.00678
