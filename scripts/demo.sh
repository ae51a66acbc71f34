#!/usr/bin/env bash
# Demonstrate the main features with the example in examples/library. `make demo` runs this script.
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

echo 'The demo takes one to six minutes, depending on how busy the machine is. With ENGINE=local, it does not use Spark and is faster.'

heading '1. Write a schema' \
    'A text file declares the types, keys, constraints and indexes of a graph. This is an excerpt:'
show "cat $library/schema.pg"
sed -n '/^node Topic/,/^}/p; /^edge About/,/^}/p' "$library/schema.pg"

heading '2. Check the schema' \
    'This needs neither a graph nor a server.'
show "omnigraph schema check $library/schema.pg"
omnigraph schema check "$library/schema.pg"

heading '3. Check the queries' \
    'Names, types and parameters are checked against the schema before any query runs.'
show "omnigraph lint --schema $library/schema.pg --query $library/queries.gq"
omnigraph lint --schema "$library/schema.pg" --query "$library/queries.gq"

heading '4. Plan a schema change' \
    'Renames keep the data, and the plan shows the risk of each step.'
show "omnigraph schema diff $library/schema.pg $library/schema-next.pg"
omnigraph schema diff "$library/schema.pg" "$library/schema-next.pg"

heading '5. Find mistakes' \
    'All errors are reported at once, each with its position, and the exit code is 1.'
show "omnigraph lint --schema $library/schema.pg --query $library/broken.gq"
status=0
omnigraph lint --schema "$library/schema.pg" --query "$library/broken.gq" || status=$?
if [[ $status -ne 1 ]]; then
    echo "expected exit code 1, got $status" >&2
    exit 1
fi

heading '6. Create and load a graph' \
    'Spark loads the data in one commit. This small data set could also be loaded without Spark.'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
graph=$scratch/library.omni
quoted() { for word in "$@"; do [[ $word == *[[:space:]{}]* ]] && word="'$word'"; printf ' %s' "$word"; done; }
run() { show "omnigraph$(quoted "${@//$scratch\//}")"; omnigraph "$@" 2>&1 | sed "s|$scratch/||g"; }
run init --schema "$library/schema.pg" "$graph"
engine=${ENGINE:-spark}
show "omnigraph load library.omni --data $library/data --mode append --engine $engine"
data=$PWD/$library/data
(cd "$scratch" && omnigraph load library.omni --data "$data" --mode append --engine "$engine")

heading '7. Query the graph' \
    'Run named queries from a file, with typed parameters.'
queries=$library/queries.gq
run query most_cited --query "$queries" --params '{"n": 5}' --store "$graph" --max-width 48
run query reviewers_for --query "$queries" --params '{"doi": "10.5555/lib.2026.00200", "n": 3}' \
    --store "$graph"

heading '8. Change the graph on a branch' \
    'Creating a branch takes the same time in graphs of any size. An invalid change has no effect.'
run branch create review/spring --store "$graph"
run mutate accept --query "$queries" --store "$graph" --branch review/spring --as ada \
    --params '{"doi": "10.5555/lib.2026.00200", "on": "2026-06-01", "pages": 12}' -m 'It appeared'
show "omnigraph mutate -e 'insert Topic { slug: \"No Spaces\", name: \"x\" }' --store library.omni"
status=0
omnigraph --quiet mutate -e 'insert Topic { slug: "No Spaces", name: "x" }' --store "$graph" || status=$?
if [[ $status -ne 1 ]]; then
    echo "expected exit code 1, got $status" >&2
    exit 1
fi

heading '9. Read past commits' \
    'Every commit stays readable: main, the branch, and main before the load.'
run commit list "$graph" --branch review/spring
status_of="match { \$p: Paper { doi: \"10.5555/lib.2026.00200\" } } return { \$p.status, \$p.pages }"
run query -e "$status_of" --store "$graph"
run query -e "$status_of" --store "$graph" --branch review/spring
before=$(omnigraph commit list "$graph" --json | python -c \
    'import json, sys; print(json.load(sys.stdin)["commits"][1]["graph_commit_id"])')
show "omnigraph query -e 'match { … } return { count(\$p) as papers }' --store library.omni --snapshot $before"
omnigraph query -e 'match { $p: Paper } return { count($p) as papers }' --store "$graph" \
    --snapshot "$before"

heading '10. Merge the branch' \
    'In the meantime, the same paper changes on main. The merge reports a conflict, which --strategy resolves.'
run mutate accept --query "$queries" --store "$graph" --as bob \
    --params '{"doi": "10.5555/lib.2026.00200", "on": "2026-06-01", "pages": 14}' -m 'Two more pages'
run diff main...review/spring --store "$graph"
show 'omnigraph branch merge review/spring --store library.omni'
status=0
(cd "$scratch" && omnigraph --quiet branch merge review/spring --store library.omni 2>&1) || status=$?
if [[ $status -ne 1 ]]; then
    echo "expected exit code 1, got $status" >&2
    exit 1
fi
run branch merge review/spring --store "$graph" --strategy theirs --dry-run
run branch merge review/spring --store "$graph" --strategy theirs --delete-branch --as ada -m 'Spring'
run query -e "$status_of" --store "$graph"
run log "$graph"

heading '11. Serve the graph' \
    'Other programs and machines can use the graph over HTTP. This server requires no tokens.'
show 'omnigraph serve library.omni --unauthenticated --bind 127.0.0.1:0 &'
coproc server { cd "$scratch" && exec omnigraph serve library.omni --unauthenticated --bind 127.0.0.1:0 2> server.log; }
server_id=$server_PID
trap 'kill "$server_id" 2> /dev/null || true; rm -rf "$scratch"' EXIT
read -r listening <&"${server[0]}" || { cat "$scratch/server.log" >&2; exit 1; }
echo "$listening"
address=http://${listening#OMNIGRAPH_LISTEN_ADDR=}/graphs/default
body='{"query": "match { $p: Paper } return { $p.status, count($p) as papers } order { $p.status }"}'
if command -v curl > /dev/null; then
    show "curl $address/query -H 'Content-Type: application/json' -d '$body'"
    curl --silent --show-error --fail "$address/query" -H 'Content-Type: application/json' -d "$body"
    echo
else
    show "python    # urllib.request.urlopen(\"$address/query\", …)"
    python - "$address" "$body" <<'PY'
import sys
import urllib.request

address, body = sys.argv[1:]
request = urllib.request.Request(f"{address}/query", body.encode(), {"Content-Type": "application/json"})
with urllib.request.urlopen(request) as response:
    print(response.read().decode())
PY
fi
show "omnigraph branch list --server ${address%/graphs/default} --graph default"
omnigraph branch list --server "${address%/graphs/default}" --graph default
show "python    # omnigraph.open(\"$address\").query(…)"
python - "$address" <<'PY'
import sys

import omnigraph

with omnigraph.open(sys.argv[1]) as graph:
    papers = graph.query("match { $p: Paper } return { $p.status, count($p) as papers } order { $p.status }")
    for row in papers:
        print(*row.values())
    print(graph)
PY
show 'kill %1; wait %1'
kill -TERM "$server_id"
wait "$server_id"
echo 'The server finished its requests and exited with code 0.'

heading 'Not built yet' \
    'Policies, clusters and a web console are planned.'
echo "The demo took $SECONDS s. To learn more, read README.md, docs/tutorial/README.md and ARCHITECTURE.md."
