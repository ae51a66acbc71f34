#!/bin/sh
# Print the path of the Python with which `make setup` creates .venv: the first candidate that is version 3.11 or newer
# and can create virtual environments. PYTHON=/path/to/python overrides the search.
set -eu

works() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if works "$candidate"; then
        command -v "$candidate"
        exit 0
    fi
done

echo "No Python 3.11 or newer with the venv module was found." >&2
echo "Install it (on Debian or Ubuntu: apt-get install python3 python3-venv), or specify its path:" >&2
echo "    make setup PYTHON=/path/to/python3.11" >&2
exit 1
