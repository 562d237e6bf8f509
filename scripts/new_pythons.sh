#!/usr/bin/env bash
# Run the tests on new Pythons that this machine lacks, and a smoke test on PyPy, in a chroot of Debian sid.
#
# Usage: scripts/new_pythons.sh DIR [PYTEST ARGUMENTS]
#
# The script makes the chroot (1.5 GB) in DIR; later runs reuse it. It needs root and Debian. The variable PYTHONS
# selects the Pythons [default: 3.14 3.15 pypy3].
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
chroot=$(mkdir -p "${1:?DIR}" && cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- -m "not slow or python"
read -ra pythons <<<"${PYTHONS:-3.14 3.15 pypy3}"
export DEBIAN_FRONTEND=noninteractive

if ! command -v mmdebstrap >/dev/null; then
    apt-get update -qq && apt-get install -y -qq --no-install-recommends mmdebstrap
fi
if [ ! -e "$chroot/complete" ]; then
    packages=python3.14,python3.14-venv,python3.15,python3.15-venv,python3.15-dev,pypy3,pypy3-venv,ca-certificates,git,gcc,libc6-dev,openssh-client,openssh-server
    # A mirror may have an old snapshot, whose Release file has expired.
    make() {
        timeout 1200 mmdebstrap --quiet --aptopt='Acquire::Check-Valid-Until "false"' --variant=apt \
            --include="$packages" sid "$chroot" "${MIRROR:-http://deb.debian.org/debian}"
    }
    make || { find "$chroot" -mindepth 1 -delete && make; }
    touch "$chroot/complete"
fi

# pip needs the resolver, certificates and pip settings of this machine.
cp /etc/resolv.conf "$chroot/etc/resolv.conf"
cp /etc/ssl/certs/ca-certificates.crt "$chroot/etc/ssl/certs/ca-certificates.crt"
[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$chroot/etc/pip.conf"
mounted=()
cleanup() { for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do umount "${mounted[i]}"; done; }
trap cleanup EXIT
into() { # TARGET OPTIONS…
    mkdir -p "$chroot$1"
    mount "${@:2}" "$chroot$1"
    mounted+=("$chroot$1")
}
into / --bind "$chroot" # the index reads the type of the file system from the mounts, so the chroot needs its own
into /proc -t proc proc
into /dev/pts -t devpts devpts -o newinstance,ptmxmode=0666
rm -rf "$chroot/work" && mkdir "$chroot/work"
git -C "$root" archive HEAD | tar -x -C "$chroot/work"
[ ! -d "$root/.rg" ] || cp -rL "$root/.rg" "$chroot/work/.rg" # old versions of rg for the tests, which sid lacks

inside() { timeout "${SECONDS_LIMIT:-5400}" chroot "$chroot" env -u PYTHONPATH -u PIP_FIND_LINKS HOME=/root PATH=/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE= RIPWRAP_RGS=15.2.0 bash -ec "cd /work && $1" -- "${@:2}"; }
failed=0
for python in "${pythons[@]}"; do
    venv=/root/venv-$python
    name=python$python
    [ "$python" != pypy3 ] || name=pypy3
    inside "[ -e $venv ] || $name -m venv $venv; $venv/bin/python -VV"
    if [ "$python" = pypy3 ]; then
        inside "$venv/bin/pip install --quiet '.[bin,cli]' trio && $venv/bin/python scripts/smoke.py" || failed=1
    else
        inside "$venv/bin/pip install --quiet --upgrade pip && $venv/bin/pip install --quiet '.[bin,cli]' --group test"
        inside "$venv/bin/pytest --numprocesses=2 \"\$@\"" "$@" || failed=1
    fi
done
exit "$failed"
