# SPDX-License-Identifier: MIT
"""How much a server can carry: models, fits, choice, score. Pure."""
