#!/usr/bin/env bash
# Installs requirements/cpu.txt and this package into the virtual environment whose python is $1.
# Two passes: sam2 is a source distribution whose build imports the torch of the first pass.
set -euo pipefail
python=$1
here=$(cd "$(dirname "$0")" && pwd)
list=$(mktemp)
trap 'rm -f "$list"' EXIT
pip() { "$python" -m pip "$@" --disable-pip-version-check -q; }

echo "installing the pinned CPU environment (about 3 minutes the first time) ..."
grep -v '^sam2==' "$here/cpu.txt" > "$list"
pip install --no-deps $(grep -E '^(setuptools|wheel)==' "$here/cpu.txt")
pip install --no-deps --no-build-isolation -r "$list"
if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "error: torch was installed but cannot be imported: it is not the CPU build." >&2
    echo "remedy: let pip find PyTorch's CPU wheels, then try again. See docs/install.md, 'CPU wheels'." >&2
    exit 1
fi
SAM2_BUILD_CUDA=0 pip install --no-deps --no-build-isolation $(grep '^sam2==' "$here/cpu.txt")
pip install --no-deps --no-build-isolation -e "$here/.."
