# SPDX-License-Identifier: MIT
"""Measures weir beside other servers: what a request, a connection and a byte cost on one core."""
