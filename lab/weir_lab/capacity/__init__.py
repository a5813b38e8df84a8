# SPDX-License-Identifier: MIT
"""Capacity of a server: models, fits, choice, score. Pure."""
