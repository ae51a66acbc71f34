#!/usr/bin/env bash
# What works today, on the example in examples/library. Started by `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."

PATH="$(cd "${BIN:-.venv/bin}" && pwd):$PATH"
library=examples/library

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
    bold=$'\e[1m' blue=$'\e[34m' dim=$'\e[2m' plain=$'\e[0m'
else
    bold='' blue='' dim='' plain=''
fi

heading() { printf '\n%s%s%s\n%s%s%s\n\n' "$bold$blue" "$1" "$plain" "$dim" "$2" "$plain"; }
show() { printf '%s$ %s%s\n' "$bold" "$*" "$plain"; }

heading '1. A schema' \
    'Types, keys, constraints and indexes of a graph, in one text file. A part of it:'
show "cat $library/schema.pg"
sed -n '/^node Topic/,/^}/p; /^edge About/,/^}/p' "$library/schema.pg"

heading '2. The schema is checked' \
    'Without a graph and without a server.'
show "omnigraph schema check $library/schema.pg"
omnigraph schema check "$library/schema.pg"

heading '3. Queries are checked against it' \
    'Names, types and parameters; what passes here fits the schema.'
show "omnigraph lint --schema $library/schema.pg --query $library/queries.gq"
omnigraph lint --schema "$library/schema.pg" --query "$library/queries.gq"

heading '4. The next version of the schema is a plan' \
    'Renames keep their data. Each step says what it risks.'
show "omnigraph schema diff $library/schema.pg $library/schema-next.pg"
omnigraph schema diff "$library/schema.pg" "$library/schema-next.pg"

heading '5. Mistakes are shown where they are' \
    'All of them at once. The command fails, as it should.'
show "omnigraph lint --schema $library/schema.pg --query $library/broken.gq"
status=0
omnigraph lint --schema "$library/schema.pg" --query "$library/broken.gq" || status=$?
if [[ $status -ne 1 ]]; then
    echo "expected exit code 1, got $status" >&2
    exit 1
fi

heading '6. A graph is made, branched and copied' \
    'In open files. A branch is made at once, whatever the graph holds.'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
graph=$scratch/library.omni
run() { show "omnigraph ${*//$scratch\//}"; omnigraph --quiet "$@" | sed "s|$scratch/||g"; }
run init --schema "$library/schema.pg" "$graph"
run branch create review/spring --uri "$graph"
run branch list --uri "$graph"
run commit list "$graph"
run copy "$graph" "$scratch/copy.omni"
run branch list --uri "$scratch/copy.omni"

heading 'Not built yet' \
    'The query engine, merges and the Spark pipeline come next.'
echo 'Read on: README.md, docs/tutorial/README.md, ARCHITECTURE.md'
