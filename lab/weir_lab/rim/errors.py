# SPDX-License-Identifier: MIT
"""What may go wrong out there."""


class LabError(Exception):
    """Something that an experiment needs did not work; the message is for the user."""


class GoneError(LabError):
    """What all further points need is no longer there."""
