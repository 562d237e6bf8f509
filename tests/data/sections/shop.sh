#!/usr/bin/env bash
set -eu # no() {

# Says how.
usage() {
    cat <<EOF2
no() {
}
EOF2
}

function build
{
    local name="${1#*\}}"
    case "$name" in
    a) echo "}" ;;
    esac
    for x in 1 2; do
        if [ "$x" ]; then
            echo $#
        fi
    done
}

flat() {
echo 1
    echo 2
}

one() { echo 1; }

function both() (
    cd /
)

if true; then
    inside() {
        echo 3
    }
fi
usage
