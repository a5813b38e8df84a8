# SPDX-License-Identifier: MIT
"""What noisy measurements show, and what they do not. Pure."""
