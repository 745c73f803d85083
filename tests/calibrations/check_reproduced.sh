#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The shipped calibrations are what their commands make of the measured tables.
#
#   tests/calibrations/check_reproduced.sh TOWTANK DATA WORK [ops|frameworks]
#
# DATA is the folder of measured tables and cases; without it the check is skipped (exit code 77).
# Numbers may differ by one part in a thousand: the libraries of another processor round otherwise.
set -euo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$tests/../.." && pwd)
towtank=$1 data=$2 work=$3 what=${4:-ops}
if [ ! -d "$data/cases" ]; then
  echo "SKIPPED: no measured tables at $data: the shipped calibrations were not made again." >&2
  exit 77
fi
data=$(cd "$data" && pwd)
rm -rf "$work"
mkdir -p "$work/made"
library=$root/model/cost/library
case $what in
  ops)
    "$root/scripts/make-profiles" "$data" "$work/profiles" "$towtank" >/dev/null
    "$root/scripts/make-calibrations" "$work/profiles" "$work/made" "$towtank" >/dev/null
    ;;
  frameworks)
    command=$(sed -n 's/^ *"command": "towtank \(.*\)",$/\1/p' "$library/frameworks.json")
    mkdir "$work/cases"
    ln -s "$data"/cases/*.jsonl "$work/cases/"
    cd "$work/cases"
    # The command's own words.
    # shellcheck disable=SC2086
    "$towtank" $command >/dev/null
    mv frameworks.json "$work/made/"
    ;;
  *)
    echo "unknown part: $what" >&2
    exit 2
    ;;
esac
differ=0
for made in "$work"/made/*.json; do
  shipped=$library/$(basename "$made")
  [ -f "$shipped" ] || { echo "not shipped: $(basename "$made")"; differ=1; continue; }
  awk -f "$tests/same_numbers.awk" "$shipped" "$made" || differ=1
done
exit $differ
