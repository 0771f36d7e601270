#!/usr/bin/env bash
# Prints a hash of what tests read beside their own module: deploy/, docs/, the OpenStack of tests,
# and the executables in bin/ that tests start. Go's test cache sees none of them. The Makefile puts
# the hash into MILLWRIGHT_INPUTS. A test that reads one of these files reads that variable, so that
# Go runs the test again when the hash changes.
set -euo pipefail
# coreutils and macOS name the program differently.
if command -v sha256sum >/dev/null; then sum=(sha256sum); else sum=(shasum -a 256); fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."

{
  git ls-files -z --cached --others --exclude-standard deploy docs test/openstack/world.json |
    while IFS= read -r -d '' file; do [ ! -f "$file" ] || printf '%s\0' "$file"; done | xargs -0 "${sum[@]}"
  # tools/build.sh leaves the key of each executable there.
  cat bin/.*.key 2>/dev/null || true
} | "${sum[@]}" | cut -d' ' -f1
