# SPDX-License-Identifier: MIT
"""The experiments: what each measures, step by step, and the report of its results."""
