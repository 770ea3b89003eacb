// The sections of the page: from the data of /api/status to HTML. Each is a function of its data, and of the last hour.

import { addProblems, stream } from "./flows.js";
import { html, nothing } from "./lit-html.js";
import { age, bytes, count, mark, none, orNothing, plural, rate, sentence, since, table, time } from "./words.js";

const STAGES = { live: "good", candidate: "warn", building: "warn", previous: "plain" };
const NODES = { ready: "good", degraded: "warn", "not ready": "bad", "no answer": "bad" };

export const SECTIONS = {
  services: (data) =>
    table("Servers", [
      { title: "server", cell: (row) => row.service },
      { title: "state", cell: (row) => (row.is_up ? mark("good", "up") : mark("bad", "down")) },
      { title: "", isText: true, cell: (row) => (row.is_up ? html`<span class="soft">${row.url}</span>` : `${sentence(row.detail)} ${row.effect}`) },
    ], data),

  nodes: (data) =>
    table("Query nodes", [
      { title: "node", cell: (row) => html`${row.page_url ? html`<a href=${row.page_url}>${row.node}</a>` : row.node}${orNothing(row.is_self, html` <span class="soft">(this one)</span>`)}` },
      { title: "state", cell: (row) => mark(NODES[row.state] ?? "plain", row.state) },
      { title: "owns", isNumber: true, cell: (row) => plural(row.owned_partitions, "partition") },
      { title: "", isText: true, cell: (row) => row.reasons.join(" ") },
    ], data),

  versions: (data) =>
    data.length === 0
      ? none("There is no read model yet.")
      : table("Read models and their versions", [
          { title: "read model", cell: (row) => row.read_model },
          { title: "version", isNumber: true, cell: (row) => row.version },
          { title: "stage", cell: (row) => mark(STAGES[row.stage] ?? "plain", row.stage) },
          { title: "fold", isNumber: true, cell: (row) => row.fold_revision ?? "" },
          { title: "since", cell: (row) => time(row.live_since ?? row.created_at) },
          { title: "kept until", cell: (row) => (row.kept_until ? time(row.kept_until) : "") },
          { title: "reason", isText: true, cell: (row) => row.reason },
        ], data),

  rebuilds: (data) => (data.length === 0 ? none("None.") : data.map(rebuild)),
  stream,
  partitions: (data) => (data.length === 0 ? none("No partition has been read yet.") : byVersion(data).map(partitions)),

  quality: (data) =>
    table("Quality checks", [
      { title: "read model", cell: (row) => row.read_model },
      { title: "last verdict", cell: (row) => verdict(row.last_check) },
      { title: "verified up to", cell: (row) => verified(row.verified, (mark) => html`${mark.store} ${time(mark.verified_up_to)} <span class="soft">(${age(mark.age_s)} ago)</span>`) },
      { title: "every key compared", cell: (row) => verified(row.verified, (mark) => `${mark.store} ${age(mark.full_age_s)} ago`) },
    ], data),

  lake: (data) =>
    table("Tables of the lake", [
      { title: "table", cell: (row) => row.table },
      { title: "holds", cell: (row) => (row.exists ? (row.is_event_table ? "events" : row.version == null ? "unknown" : `v${row.version}`) : html`<span class="soft">not created yet</span>`) },
      { title: "age", isNumber: true, cell: (row) => (row.exists ? age(row.age_s) : "") },
      { title: "events behind", isNumber: true, cell: (row) => (!row.exists || row.is_event_table ? "" : count(row.events_behind)) },
      { title: "rows", isNumber: true, cell: (row) => (row.exists ? count(row.rows) : "") },
      { title: "size", isNumber: true, cell: (row) => (row.exists ? bytes(row.bytes) : "") },
    ], data),
};

function rebuild(row) {
  const name = `${row.read_model} v${row.version}`;
  return html`<div>
    <h3>${name} ${mark(STAGES[row.stage], row.stage)}</h3>
    ${row.progress.map((stage) => stageProgress(name, stage))}
    ${row.partitions == null ? nothing : bar(`${name}: partitions loaded`, row.ready_partitions, row.partitions, "partitions loaded on this node")}
    <p class="soft">“${row.reason}”, started ${since(row.started_at)}. ${run(row)}</p>
  </div>`;
}

function stageProgress(name, { stage, done, total, unit, rate_per_s, seconds_left }) {
  const title = stage.replaceAll("_", " ");
  if (done == null) return html`<p>${title}: running</p>`;
  if (total == null) return html`<p>${title}: ${count(done)} ${unit}</p>`;
  const pace = rate_per_s ? `, ${rate(rate_per_s)}` : "";
  const left = seconds_left == null ? "" : `, ${age(seconds_left)} left`;
  return bar(`${name}: ${title}`, done, total, `${unit}, ${title}${pace}${left}`);
}

function bar(label, done, total, words) {
  const share = total ? Math.floor((100 * Math.min(done, total)) / total) : 0;
  return html`<progress aria-label=${label} max="100" value=${share}></progress>
    <p>${count(done)} of ${count(total)} ${words} (${share} %)</p>`;
}

// In Airflow's frame, a link would open Airflow inside Airflow.
function run({ run_url, run_id }) {
  if (!run_url) return nothing;
  return window === window.top ? html`<a href=${run_url}>Its run in Airflow</a>` : html`Run <code>${run_id}</code>`;
}

function byVersion(reports) {
  const groups = new Map();
  for (const report of reports) {
    const name = `${report.read_model} v${report.version}`;
    groups.set(name, [...(groups.get(name) ?? []), report]);
  }
  return [...groups.values()];
}

function partitions(reports) {
  const [{ read_model, version, stage, placement }] = reports;
  const ready = reports.filter((report) => report.is_ready).length;
  const behind = reports.map((report) => report.events_behind);
  const name = `${read_model} v${version}`;
  return html`<details>
    <summary><b>${name}</b> ${mark(STAGES[stage] ?? "plain", stage)}
      ${ready === reports.length ? plural(ready, "partition") + ", all ready" : mark("bad", `${ready} of ${reports.length} partitions ready`)},
      ${behind.includes(null) ? "lag unknown" : `${plural(behind.reduce((a, b) => a + b, 0), "event")} behind`}${placement === "partitioned" ? "" : `, ${placement}`}
    </summary>
    ${table(`Partitions of ${name}`, [
      { title: "partition", cell: (row) => row.partition },
      { title: "owner", cell: (row) => row.owner ?? mark("bad", "none") },
      { title: "standbys", cell: (row) => row.standbys.join(", ") || "none" },
      { title: "state", cell: (row) => (row.is_ready ? mark("good", "ready") : mark("warn", "loading")) },
      { title: "events behind", isNumber: true, cell: (row) => count(row.events_behind) },
      { title: "records to read", isNumber: true, cell: (row) => count(row.lag_records) },
    ], reports)}
  </details>`;
}

function verdict(check) {
  if (!check) return html`<span class="soft">no check yet</span>`;
  const state = check.passed === null ? mark("warn", "not checkable") : check.passed ? mark("good", "passed") : mark("bad", "failed");
  const what = `${check.mode}${check.version == null ? "" : `, v${check.version}`}, ${since(check.ended_at)}`;
  return html`${state} <span title=${check.verdict}>${what}</span>${check.engine ? html` <span class="soft">${engine(check)}</span>` : nothing}${check.report ? html` <a href=${check.report}>Report<span class="only-read"> of this check</span></a>` : nothing}`;
}

function engine(check) {
  return `with ${{ duckdb: "DuckDB", spark: "Spark" }[check.engine] ?? check.engine}${check.engine_reason ? `, because ${check.engine_reason}` : ""}`;
}

function verified(stores, line) {
  return stores.length ? stores.map((mark) => html`<div>${line(mark)}</div>`) : html`<span class="soft">unknown</span>`;
}

// What a person should know first, worst first: [{state: "bad" | "warn", text}].
export function problems(sections) {
  const found = [];
  const add = (state, text) => found.push({ state, text });
  const data = (name) => sections[name]?.data ?? null;
  for (const service of data("services") ?? []) if (!service.is_up) add("bad", `${service.service} is down: ${sentence(service.detail)} ${service.effect}`);
  for (const node of data("nodes") ?? [])
    if (node.state !== "ready") add(node.state === "degraded" ? "warn" : "bad", `${node.node} is ${node.state}. ${node.reasons.join(" ")}`);
  if (data("stream") && !sections.stream.error) addProblems(data("stream"), add);
  for (const model of data("quality") ?? [])
    if (model.last_check?.passed === false) add("bad", `The last quality check of ${model.read_model} failed: ${model.last_check.verdict}`);
  for (const report of data("partitions") ?? [])
    if (report.stage === "live" && !report.owner) add("bad", `Partition ${report.partition} of ${report.read_model} has no owner.`);
  const isKafkaDown = (data("services") ?? []).some((service) => service.service === "Kafka" && !service.is_up);
  for (const [name, section] of Object.entries(sections))
    if (section.error && !isKafkaDown) add("warn", `The section “${name}” cannot be read: ${section.error}`);
  return found.sort((a, b) => (a.state === "bad" ? 0 : 1) - (b.state === "bad" ? 0 : 1));
}
