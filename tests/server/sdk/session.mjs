// Calls every operation of the TypeScript SDK 0.3 against a server, and prints one JSON object with all results.
// Usage: node session.mjs BASE_URL BRANCH [HEADERS_AS_JSON]

import { Client, operations } from "./client.mjs";

const [baseUrl, branch, headers] = process.argv.slice(2);
const client = new Client({ baseUrl, headers: JSON.parse(headers ?? "{}") });
const results = {};

async function call(title, input) {
  const operation = title.split(" ")[0];
  const { data, error, response } = await operations[operation](client, input);
  const isBlob = data instanceof Blob;
  const shown = isBlob ? await data.text() : data;
  results[title] = { status: response.status, ...(error === undefined ? { data: shown } : { error }), is_blob: isBlob };
  return shown;
}

const older = "query older($age: I32) { match { $p: Person  $p.age >= $age } return { $p.name, $p.age } order { $p.name } }";
const add = "query add($name: String, $age: I32) { insert Person { name: $name, age: $age } }";
const setAge = 'query set_age($age: I32) { update Person set { age: $age } where name = "ada" }';

await call("health");
const { schema_source } = await call("getSchema");
await call("applySchema", { schema_source });
await call("createBranch", { name: branch, from: "main" });
await call("createBranch again", { name: branch, from: "main" });
await call("listBranches");
await call("read", { query_source: older, query_name: "older", params: { age: 36 }, branch });
await call("read with a mistake", { query_source: "query q() { match { $p: Nobody } return { $p.id } }", branch });
await call("change", { query_source: add, query_name: "add", params: { name: "cyd", age: 50 }, branch });
const line = JSON.stringify({ type: "Person", data: { name: "dee" } });
await call("ingest", { data: line, branch, from: "main", mode: "merge" });
await call("getSnapshot", { branch });
const { commits } = await call("listCommits", { branch });
await call("listCommits without a branch", { branch: null });
await call("getCommit", { commit_id: commits[0].graph_commit_id });
await call("getCommit missing", { commit_id: "01AAAAAAAAAAAAAAAAAAAAAAAA" });
await call("export_", { branch, type_names: ["Person"] });
await call("export_ by table", { branch, table_keys: ["edge:Knows"] });
await call("createBranch other", { name: `${branch}-theirs`, from: branch });
await call("change ours", { query_source: setAge, params: { age: 1 }, branch });
await call("change theirs", { query_source: setAge, params: { age: 2 }, branch: `${branch}-theirs` });
await call("mergeBranches in conflict", { source: `${branch}-theirs`, target: branch });
await call("createBranch copy", { name: `${branch}-copy`, from: "main" });
await call("mergeBranches", { source: branch, target: `${branch}-copy` });
await call("mergeBranches again", { source: branch, target: `${branch}-copy` });
await call("deleteBranch unmerged", { branch: `${branch}-theirs` });
await call("deleteBranch", { branch });
await call("deleteBranch missing", { branch });
await call("listRuns");
await call("getRun", { run_id: "r1" });
await call("abortRun", { run_id: "r1" });
await call("publishRun", { run_id: "r1" });

const missing = Object.keys(operations).filter((name) => !(name in results));
if (missing.length > 0) throw new Error(`not called: ${missing.join(", ")}`);
process.stdout.write(JSON.stringify(results));
