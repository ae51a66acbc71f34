#!/usr/bin/env bash
# What works today, on the example in examples/library. Started by `make demo`.
set -euo pipefail
SECONDS=0
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

heading '6. A graph is made and filled' \
    'In open files, by Spark, which small data would not need. One load is one commit.'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
graph=$scratch/library.omni
quoted() { for word in "$@"; do [[ $word == *[[:space:]{}]* ]] && word="'$word'"; printf ' %s' "$word"; done; }
run() { show "omnigraph$(quoted "${@//$scratch\//}")"; omnigraph --quiet "$@" | sed "s|$scratch/||g"; }
run init --schema "$library/schema.pg" "$graph"
engine=${ENGINE:-spark}
show "omnigraph load library.omni --data $library/data --mode append --engine $engine"
data=$PWD/$library/data
(cd "$scratch" && omnigraph load library.omni --data "$data" --mode append --engine "$engine")

heading '7. It answers' \
    'Named queries with typed parameters, from a file, as a table.'
queries=$library/queries.gq
run query most_cited --query "$queries" --params '{"n": 5}' --store "$graph" --max-width 48
run query reviewers_for --query "$queries" --params '{"doi": "10.5555/lib.2026.00200", "n": 3}' \
    --store "$graph"

heading '8. It changes on a branch' \
    'A branch is made at once, whatever the graph holds. A wrong change has no effect.'
run branch create review/spring --uri "$graph"
run mutate accept --query "$queries" --store "$graph" --branch review/spring --as ada \
    --params '{"doi": "10.5555/lib.2026.00200", "on": "2026-06-01", "pages": 12}' -m 'It appeared'
show "omnigraph mutate -e 'insert Topic { slug: \"No Spaces\", name: \"x\" }' --store library.omni"
status=0
omnigraph --quiet mutate -e 'insert Topic { slug: "No Spaces", name: "x" }' --store "$graph" || status=$?
if [[ $status -ne 1 ]]; then
    echo "expected exit code 1, got $status" >&2
    exit 1
fi

heading '9. It remembers' \
    'Every commit stays readable. Main, the branch, and main before it was filled:'
run commit list "$graph" --branch review/spring
status_of="match { \$p: Paper { doi: \"10.5555/lib.2026.00200\" } } return { \$p.status, \$p.pages }"
run query -e "$status_of" --store "$graph"
run query -e "$status_of" --store "$graph" --branch review/spring
before=$(omnigraph commit list "$graph" --json | python -c \
    'import json, sys; print(json.load(sys.stdin)["commits"][1]["graph_commit_id"])')
show "omnigraph query -e 'match { … } return { count(\$p) as papers }' --store library.omni --snapshot $before"
omnigraph query -e 'match { $p: Paper } return { count($p) as papers }' --store "$graph" \
    --snapshot "$before"

heading '10. It comes back together' \
    'Meanwhile main changed the same paper. The merge says so, and is decided.'
run mutate accept --query "$queries" --store "$graph" --as bob \
    --params '{"doi": "10.5555/lib.2026.00200", "on": "2026-06-01", "pages": 14}' -m 'Two more pages'
run diff main...review/spring --uri "$graph"
show 'omnigraph branch merge review/spring --uri library.omni'
status=0
(cd "$scratch" && omnigraph --quiet branch merge review/spring --uri library.omni 2>&1) || status=$?
if [[ $status -ne 1 ]]; then
    echo "expected exit code 1, got $status" >&2
    exit 1
fi
run branch merge review/spring --uri "$graph" --strategy theirs --dry-run
run branch merge review/spring --uri "$graph" --strategy theirs --delete-branch --as ada -m 'Spring'
run query -e "$status_of" --store "$graph"
run log "$graph"

heading 'Not built yet' \
    'The server comes next.'
echo "All of this took $SECONDS s. Read on: README.md, docs/tutorial/README.md, ARCHITECTURE.md"
