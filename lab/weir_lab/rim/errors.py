# SPDX-License-Identifier: MIT
"""Errors that the lab reports to the user, and how it words those of the system."""


def words(error: BaseException) -> str:
    """The error as a user reads it: the file and the reason, without a number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


class LabError(Exception):
    """A part of an experiment failed; the message is for the user."""


class GoneError(LabError):
    """The running server is gone, so no further point can be measured."""
