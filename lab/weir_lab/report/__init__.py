# SPDX-License-Identifier: MIT
"""Plots and the page. Takes results, returns text and pictures."""
