#!/usr/bin/env bash
# Run the tests on new Pythons that this machine lacks, and a smoke test on PyPy, in a chroot of Debian sid.
#
# Usage: scripts/new_pythons.sh [PYTEST ARGUMENTS]
#
# It needs root and Debian. The variable PYTHONS selects the Pythons [default: 3.14 3.15 pypy3]. The chroot is made in
# the directory CHROOT [default: ~/.cache/ripwrap/sid], and later runs reuse it.
set -euo pipefail
# Mounts end with the processes of this namespace, however they end.
[ -n "${RIPWRAP_APART:-}" ] || exec env RIPWRAP_APART=1 unshare --mount bash "$0" "$@"
root=$(cd "$(dirname "$0")/.." && pwd)
chroot=$(mkdir -p "${CHROOT:=$HOME/.cache/ripwrap/sid}" && cd "$CHROOT" && pwd)
[ $# -gt 0 ] || set -- -m "not slow or python"
read -ra pythons <<<"${PYTHONS:-3.14 3.15 pypy3}"
export DEBIAN_FRONTEND=noninteractive

packages=ca-certificates,git,gcc,libc6-dev # for packages that have no wheels for a new Python, such as tree-sitter
for python in "${pythons[@]/#3/python3}"; do packages+=,$python,$python-venv,${python/python3*/$python-dev}; done
if [ "$(cat "$chroot/complete" 2>/dev/null)" != "$packages" ]; then
    command -v mmdebstrap >/dev/null ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends mmdebstrap >/dev/null; }
    # A mirror may have an old snapshot, whose Release file has expired.
    make() {
        find "$chroot" -mindepth 1 -delete &&
            timeout 1200 mmdebstrap --quiet --aptopt='Acquire::Check-Valid-Until "false"' --variant=apt \
                --include="$packages" sid "$chroot" "${MIRROR:-http://deb.debian.org/debian}"
    }
    make || make
    echo "$packages" >"$chroot/complete"
fi

# pip needs the resolver, certificates and pip settings of this machine.
cp /etc/resolv.conf "$chroot/etc/resolv.conf"
cp /etc/ssl/certs/ca-certificates.crt "$chroot/etc/ssl/certs/ca-certificates.crt"
[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$chroot/etc/pip.conf"
into() { mkdir -p "$chroot$1" && mount "${@:2}" "$chroot$1"; } # TARGET OPTIONS…
into / --bind "$chroot" # the index reads the type of the file system from the mounts, so the chroot needs its own
into /proc -t proc proc
into /dev/pts -t devpts devpts -o newinstance,ptmxmode=0666
rm -rf "$chroot/work" && mkdir "$chroot/work"
git -C "$root" archive HEAD | tar -x -C "$chroot/work"
[ ! -d "$root/.rg" ] || cp -rL "$root/.rg" "$chroot/work/.rg" # old versions of rg for the tests, which sid lacks

inside() { timeout "${SECONDS_LIMIT:-5400}" chroot "$chroot" env -u PYTHONPATH -u PIP_FIND_LINKS -u VIRTUAL_ENV HOME=/root \
    PATH=/usr/bin:/bin PYTHONDONTWRITEBYTECODE= RIPWRAP_RGS=15.2.0 bash -ec "cd /work && $1" -- "${@:2}"; }
failed=0
for python in "${pythons[@]}"; do
    venv=/root/venv-$python
    inside "[ -e $venv ] || ${python/#3/python3} -m venv $venv; $venv/bin/python -VV; $venv/bin/pip install --quiet --upgrade pip"
    if [ "$python" = pypy3 ]; then
        inside "$venv/bin/pip install --quiet '.[bin,cli]' trio && $venv/bin/python scripts/smoke.py" || failed=1
    else
        inside "$venv/bin/pip install --quiet '.[bin,cli]' --group test" &&
            inside "$venv/bin/pytest --numprocesses=2 --dist=worksteal \"\$@\"" "$@" || failed=1
    fi
done
exit "$failed"
