#!/usr/bin/env bash
# Run scripts/smoke.py on arm64 Linux, emulated by qemu, in a chroot of Debian 12.
#
# Usage: scripts/arm64.sh DIR
#
# The script makes the chroot (0.5 GB, in about ten minutes) in DIR; later runs reuse it. It needs root and Debian. It
# installs qemu. If qemu is not registered with the kernel, the script registers it until the script ends.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
chroot=$(mkdir -p "${1:?DIR}" && cd "$1" && pwd)
export DEBIAN_FRONTEND=noninteractive

if ! command -v mmdebstrap >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
    apt-get update -qq && apt-get install -y -qq --no-install-recommends mmdebstrap qemu-user-static
fi

formats=/proc/sys/fs/binfmt_misc
mounted=() registered=
cleanup() {
    [ -z "$registered" ] || echo -1 >"$formats/ripwrap-arm64"
    for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do umount "${mounted[i]}"; done
}
trap cleanup EXIT
into() { # TARGET OPTIONS…
    mkdir -p "$1"
    mount "${@:2}" "$1"
    mounted+=("$1")
}
[ -e $formats/register ] || into $formats -t binfmt_misc binfmt_misc
if ! grep -qs qemu-aarch64 $formats/*; then
    # The header of an ELF file for arm64, and a mask of the bits to compare. The flag F makes the kernel open qemu now,
    # so the chroot needs no copy of qemu. https://docs.kernel.org/admin-guide/binfmt-misc.html
    magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    echo ":ripwrap-arm64:M::$magic:$mask:$(command -v qemu-aarch64-static):F" >$formats/register
    registered=1
fi

if [ ! -e "$chroot/complete" ]; then
    timeout 3600 mmdebstrap --quiet --skip=check/qemu --architectures=arm64 --variant=apt \
        --include=python3,python3-venv,ca-certificates bookworm "$chroot" "${MIRROR:-http://deb.debian.org/debian}"
    touch "$chroot/complete"
fi
cp /etc/resolv.conf "$chroot/etc/resolv.conf"
cp /etc/ssl/certs/ca-certificates.crt "$chroot/etc/ssl/certs/ca-certificates.crt"
[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$chroot/etc/pip.conf"
into "$chroot/proc" -t proc proc
rm -rf "$chroot/work" && mkdir "$chroot/work"
git -C "$root" archive HEAD | tar -x -C "$chroot/work"

# wordllama, of the extra `vectors`, has no wheel for arm64.
timeout 3600 chroot "$chroot" env -u PYTHONPATH -u PIP_FIND_LINKS HOME=/root PATH=/usr/bin:/bin bash -ec '
    cd /work
    [ -e /root/venv ] || python3 -m venv /root/venv
    /root/venv/bin/pip install --quiet --upgrade pip
    /root/venv/bin/pip install --quiet --only-binary=:all: --no-binary=ripwrap ".[bin,cli,syntax,watch]" tantivy trio
    /root/venv/bin/python scripts/smoke.py
    /root/venv/bin/ripwrap doctor
'
