# SPDX-License-Identifier: MIT
"""The commands: their options, and what they print."""
