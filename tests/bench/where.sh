#!/bin/sh
# SPDX-License-Identifier: MIT
# The figures of where.py, which see; for make bench. RS_BUILD.
exec python3 "$(dirname "$0")/where.py"
