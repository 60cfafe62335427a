#!/bin/sh
# Runs the first Python >= 3.11 found, with the arguments given: the project's own if it is set up, else the system's.
for python in .venv/bin/python python3.13 python3.12 python3.11 python3; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        exec "$python" "$@"
    fi
done
echo "Python 3.11 or newer is needed; tried python3.13, python3.12, python3.11 and python3 on PATH." >&2
echo "Install one (Debian and Ubuntu: apt install python3 python3-venv; macOS: brew install python@3.13), then try again." >&2
exit 1
