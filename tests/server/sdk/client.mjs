// The request and response rules of the generated TypeScript SDK 0.3: a base URL that may contain a path, JSON bodies
// with a Content-Type only if there is a body, and results of the form {data, error, response}.

function serializeQuery(query) {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  const text = pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  return text === "" ? "" : `?${text}`;
}

function buildPath(template, path) {
  return template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(path[name]));
}

function chooseParser(contentType) {
  const mediaType = (contentType ?? "").split(";")[0].trim();
  if (mediaType === "") return "stream";
  if (mediaType.startsWith("application/json") || mediaType.endsWith("+json")) return "json";
  if (/^(application|audio|image|video)\//.test(mediaType)) return "blob";
  return "text";
}

export class Client {
  constructor({ baseUrl, headers = {} }) {
    this.baseUrl = baseUrl.endsWith("/") ? baseUrl.slice(0, -1) : baseUrl;
    this.headers = headers;
  }

  async request(method, template, { body, path, query } = {}) {
    const headers = new Headers(this.headers);
    if (body !== undefined) headers.set("Content-Type", "application/json");
    const response = await fetch(this.baseUrl + buildPath(template, path) + serializeQuery(query), {
      method,
      headers,
      redirect: "follow",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (!response.ok) {
      const text = await response.text();
      return { error: JSON.parse(text), response };
    }
    const parser = chooseParser(response.headers.get("Content-Type"));
    const data = parser === "stream" ? response.body : await response[parser]();
    return { data, response };
  }
}

export const operations = {
  health: (client) => client.request("GET", "/healthz"),
  read: (client, body) => client.request("POST", "/read", { body }),
  change: (client, body) => client.request("POST", "/change", { body }),
  ingest: (client, body) => client.request("POST", "/ingest", { body }),
  listBranches: (client) => client.request("GET", "/branches"),
  createBranch: (client, body) => client.request("POST", "/branches", { body }),
  deleteBranch: (client, path) => client.request("DELETE", "/branches/{branch}", { path }),
  mergeBranches: (client, body) => client.request("POST", "/branches/merge", { body }),
  listCommits: (client, query) => client.request("GET", "/commits", { query }),
  getCommit: (client, path) => client.request("GET", "/commits/{commit_id}", { path }),
  getSnapshot: (client, query) => client.request("GET", "/snapshot", { query }),
  getSchema: (client) => client.request("GET", "/schema"),
  applySchema: (client, body) => client.request("POST", "/schema/apply", { body }),
  export_: (client, body) => client.request("POST", "/export", { body }),
  listRuns: (client) => client.request("GET", "/runs"),
  getRun: (client, path) => client.request("GET", "/runs/{run_id}", { path }),
  abortRun: (client, path) => client.request("POST", "/runs/{run_id}/abort", { path }),
  publishRun: (client, path) => client.request("POST", "/runs/{run_id}/publish", { path }),
};
