# SPDX-License-Identifier: MIT
"""The experiments."""
