# SPDX-License-Identifier: MIT
"""Sites of many files: their files, the requests for them, and the filling of a cache.

A seed draws the requests, so that every server gets the same ones in the same order. It measures
nothing.
"""

import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench import http1
from bench.process import BenchError
from bench.scenarios import Many, Scenario

FILES_OF_FOLDER = 100
LINKS_OF_FILE = 50_000  # ext4 allows 65,000
DRAWS = 400_000  # the first half warms a server up; a round begins with the second half
WARM_S = 2
BATCH = 64  # requests that fill a cache, sent at once
BATCHES_OF_CONNECTION = 200


def path_of(many: Many, number: int) -> str:
    """The path of a file, by its number from 0."""
    folder, file = divmod(number, FILES_OF_FOLDER)
    return f"/{many.folder}/{folder:05d}/{file:02d}.bin"


def asked_for(many: Many) -> list[int]:
    """The numbers of the files that the requests name, evenly spread over the site."""
    step = many.files // many.asked
    return list(range(0, step * many.asked, step))


def draw(many: Many, count: int = DRAWS) -> list[int]:
    """The numbers of the requested files, in the order of the requests."""
    chance = random.Random(f"{many.folder} {many.zipf}")
    numbers = asked_for(many)
    chance.shuffle(numbers)  # files of a folder are not alike in their rank
    weights = [1 / rank**many.zipf for rank in range(1, len(numbers) + 1)]
    return chance.choices(numbers, cum_weights=list(itertools.accumulate(weights)), k=count)


def make_files(many: Many, root: Path) -> None:
    """Writes the files, unless another load has written them. With `links`, files share contents,
    because a million files of their own take minutes to write and 4 GB."""
    if (root / many.folder).exists():
        return
    chance = random.Random(many.folder)
    content = Path()
    for number in range(many.files):
        path = root / path_of(many, number)[1:]
        if number % FILES_OF_FOLDER == 0:
            path.parent.mkdir(parents=True)
        if not many.links or number % LINKS_OF_FILE == 0:
            path.write_bytes(chance.randbytes(many.size))
            content = path
        else:
            os.link(content, path)


def prepare(scenario: Scenario, root: Path, work: Path) -> Scenario:
    """Makes the files and the list of requests. Returns the scenario with its list."""
    many = scenario.many
    if many is None:
        return scenario
    make_files(many, root)
    listed = work / f"requests-{scenario.name}"
    listed.write_text("".join(f"{path_of(many, number)}\n" for number in draw(many)))
    return replace(scenario, listed=listed)


def measured(scenario: Scenario) -> Scenario:
    """The scenario for a round after the warm-up: it begins with other requests."""
    return replace(scenario, start=DRAWS // 2) if scenario.many else scenario


def filled(many: Many) -> Iterator[str]:
    """The paths that fill the cache before a round."""
    numbers = range(many.files) if many.fills_all else asked_for(many)
    return (path_of(many, number) for number in numbers)


def fill(port: int, paths: Iterator[str], answer_bytes: int) -> int:
    """Requests each path once. Returns their number.

    Raises:
        BenchError: the answers do not have this size, so one is not the file.
    """
    count = 0
    while batches := list(itertools.islice(_batches(paths), BATCHES_OF_CONNECTION)):
        with http1.connect(port) as connection:
            for batch in batches:
                connection.sendall(b"".join(map(http1.request_bytes, batch)))
                left = answer_bytes * len(batch)
                while left > 0:
                    got = len(connection.recv(1 << 20))
                    left -= got
                    if got == 0 or left < 0:
                        raise BenchError(f"an answer of {batch[0]} ... is not one of a file")
                count += len(batch)
    return count


def _batches(paths: Iterator[str]) -> Iterator[list[str]]:
    while batch := list(itertools.islice(paths, BATCH)):
        yield batch
