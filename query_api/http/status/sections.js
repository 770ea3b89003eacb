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
      { title: "state", cell: (row) => (row.isUp ? mark("good", "up") : mark("bad", "down")) },
      { title: "", isText: true, cell: (row) => (row.isUp ? html`<span class="soft">${row.url}</span>` : `${sentence(row.detail)} ${row.effect}`) },
    ], data),

  nodes: (data) =>
    table("Query nodes", [
      { title: "node", cell: (row) => html`${row.pageUrl ? html`<a href=${row.pageUrl}>${row.node}</a>` : row.node}${orNothing(row.isSelf, html` <span class="soft">(this one)</span>`)}` },
      { title: "state", cell: (row) => mark(NODES[row.state] ?? "plain", row.state) },
      { title: "owns", isNumber: true, cell: (row) => plural(row.ownedPartitions, "partition") },
      { title: "", isText: true, cell: (row) => row.reasons.join(" ") },
    ], data),

  versions: (data) =>
    data.length === 0
      ? none("There is no read model yet.")
      : table("Read models and their versions", [
          { title: "read model", cell: (row) => row.readModel },
          { title: "version", isNumber: true, cell: (row) => row.version },
          { title: "stage", cell: (row) => mark(STAGES[row.stage] ?? "plain", row.stage) },
          { title: "fold", isNumber: true, cell: (row) => row.foldRevision ?? "" },
          { title: "since", cell: (row) => time(row.liveSince ?? row.createdAt) },
          { title: "kept until", cell: (row) => (row.keptUntil ? time(row.keptUntil) : "") },
          { title: "reason", isText: true, cell: (row) => row.reason },
        ], data),

  rebuilds: (data) => (data.length === 0 ? none("None.") : data.map(rebuild)),
  stream,
  partitions: (data) => (data.length === 0 ? none("No partition has been read yet.") : byVersion(data).map(partitions)),

  quality: (data) =>
    table("Quality checks", [
      { title: "read model", cell: (row) => row.readModel },
      { title: "last verdict", cell: (row) => verdict(row.lastCheck) },
      { title: "verified up to", cell: (row) => verified(row.verified, (mark) => html`${mark.store} ${time(mark.verifiedUpTo)} <span class="soft">(${age(mark.ageS)} ago)</span>`) },
      { title: "every key compared", cell: (row) => verified(row.verified, (mark) => `${mark.store} ${age(mark.fullAgeS)} ago`) },
    ], data),

  lake: (data) =>
    table("Tables of the lake", [
      { title: "table", cell: (row) => row.table },
      { title: "holds", cell: (row) => (row.exists ? (row.isEventTable ? "events" : row.version == null ? "unknown" : `v${row.version}`) : html`<span class="soft">not created yet</span>`) },
      { title: "age", isNumber: true, cell: (row) => (row.exists ? age(row.ageS) : "") },
      { title: "events behind", isNumber: true, cell: (row) => (!row.exists || row.isEventTable ? "" : count(row.eventsBehind)) },
      { title: "rows", isNumber: true, cell: (row) => (row.exists ? count(row.rows) : "") },
      { title: "size", isNumber: true, cell: (row) => (row.exists ? bytes(row.bytes) : "") },
    ], data),
};

function rebuild(row) {
  const name = `${row.readModel} v${row.version}`;
  return html`<div>
    <h3>${name} ${mark(STAGES[row.stage], row.stage)}</h3>
    ${row.progress.map((stage) => stageProgress(name, stage))}
    ${row.partitions == null ? nothing : bar(`${name}: partitions loaded`, row.readyPartitions, row.partitions, "partitions loaded on this node")}
    <p class="soft">“${row.reason}”, started ${since(row.startedAt)}. ${run(row)}</p>
  </div>`;
}

function stageProgress(name, { stage, done, total, unit, ratePerS, secondsLeft }) {
  const title = stage.replaceAll("_", " ");
  if (done == null) return html`<p>${title}: running</p>`;
  if (total == null) return html`<p>${title}: ${count(done)} ${unit}</p>`;
  const pace = ratePerS ? `, ${rate(ratePerS)}` : "";
  const left = secondsLeft == null ? "" : `, ${age(secondsLeft)} left`;
  return bar(`${name}: ${title}`, done, total, `${unit}, ${title}${pace}${left}`);
}

function bar(label, done, total, words) {
  const share = total ? Math.floor((100 * Math.min(done, total)) / total) : 0;
  return html`<progress aria-label=${label} max="100" value=${share}></progress>
    <p>${count(done)} of ${count(total)} ${words} (${share} %)</p>`;
}

// In Airflow's frame, a link would open Airflow inside Airflow.
function run({ runUrl, runId }) {
  if (!runUrl) return nothing;
  return window === window.top ? html`<a href=${runUrl}>Its run in Airflow</a>` : html`Run <code>${runId}</code>`;
}

function byVersion(reports) {
  const groups = new Map();
  for (const report of reports) {
    const name = `${report.readModel} v${report.version}`;
    groups.set(name, [...(groups.get(name) ?? []), report]);
  }
  return [...groups.values()];
}

function partitions(reports) {
  const [{ readModel, version, stage, placement }] = reports;
  const ready = reports.filter((report) => report.isReady).length;
  const behind = reports.map((report) => report.eventsBehind);
  const name = `${readModel} v${version}`;
  return html`<details>
    <summary><b>${name}</b> ${mark(STAGES[stage] ?? "plain", stage)}
      ${ready === reports.length ? plural(ready, "partition") + ", all ready" : mark("bad", `${ready} of ${reports.length} partitions ready`)},
      ${behind.includes(null) ? "lag unknown" : `${plural(behind.reduce((a, b) => a + b, 0), "event")} behind`}${placement === "partitioned" ? "" : `, ${placement}`}
    </summary>
    ${table(`Partitions of ${name}`, [
      { title: "partition", cell: (row) => row.partition },
      { title: "owner", cell: (row) => row.owner ?? mark("bad", "none") },
      { title: "standbys", cell: (row) => row.standbys.join(", ") || "none" },
      { title: "state", cell: (row) => (row.isReady ? mark("good", "ready") : mark("warn", "loading")) },
      { title: "events behind", isNumber: true, cell: (row) => count(row.eventsBehind) },
      { title: "records to read", isNumber: true, cell: (row) => count(row.lagRecords) },
    ], reports)}
  </details>`;
}

function verdict(check) {
  if (!check) return html`<span class="soft">no check yet</span>`;
  const state = check.passed === null ? mark("warn", "not checkable") : check.passed ? mark("good", "passed") : mark("bad", "failed");
  const what = `${check.mode}${check.version == null ? "" : `, v${check.version}`}, ${since(check.endedAt)}`;
  return html`${state} <span title=${check.verdict}>${what}</span>${check.engine ? html` <span class="soft">${engine(check)}</span>` : nothing}${check.report ? html` <a href=${check.report}>Report<span class="only-read"> of this check</span></a>` : nothing}`;
}

function engine(check) {
  return `with ${{ duckdb: "DuckDB", spark: "Spark" }[check.engine] ?? check.engine}${check.engineReason ? `, because ${check.engineReason}` : ""}`;
}

function verified(stores, line) {
  return stores.length ? stores.map((mark) => html`<div>${line(mark)}</div>`) : html`<span class="soft">unknown</span>`;
}

// What a person should know first, worst first: [{state: "bad" | "warn", text}].
export function problems(sections) {
  const found = [];
  const add = (state, text) => found.push({ state, text });
  const data = (name) => sections[name]?.data ?? null;
  for (const service of data("services") ?? []) if (!service.isUp) add("bad", `${service.service} is down: ${sentence(service.detail)} ${service.effect}`);
  for (const node of data("nodes") ?? [])
    if (node.state !== "ready") add(node.state === "degraded" ? "warn" : "bad", `${node.node} is ${node.state}. ${node.reasons.join(" ")}`);
  if (data("stream") && !sections.stream.error) addProblems(data("stream"), add);
  for (const model of data("quality") ?? [])
    if (model.lastCheck?.passed === false) add("bad", `The last quality check of ${model.readModel} failed: ${model.lastCheck.verdict}`);
  for (const report of data("partitions") ?? [])
    if (report.stage === "live" && !report.owner) add("bad", `Partition ${report.partition} of ${report.readModel} has no owner.`);
  const isKafkaDown = (data("services") ?? []).some((service) => service.service === "Kafka" && !service.isUp);
  for (const [name, section] of Object.entries(sections))
    if (section.error && !isKafkaDown) add("warn", `The section “${name}” cannot be read: ${section.error}`);
  return found.sort((a, b) => (a.state === "bad" ? 0 : 1) - (b.state === "bad" ? 0 : 1));
}
