# SPDX-License-Identifier: MIT
"""Errors that the lab reports to the user."""


class LabError(Exception):
    """A part of an experiment failed; the message is for the user."""


class GoneError(LabError):
    """The running server is gone, so no further point can be measured."""
