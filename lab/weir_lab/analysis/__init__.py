# SPDX-License-Identifier: MIT
"""Statistics of noisy measurements. Pure."""
