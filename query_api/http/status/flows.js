// The section `stream`: a row for each read model, route and declaration of another kind, and behind a click its queries.

import { html } from "./lit-html.js";
import { age, count, mark, orNothing, plural, rate, table } from "./words.js";

const PHASES = { "real time": "good", batches: "good", "waiting for events": "good", "catching up": "warn", starting: "warn", failed: "bad", refused: "bad", stopped: "plain" };
// Of the flows of a row, the worst state is the row's.
const WORST = { bad: 0, warn: 1, good: 2, plain: 3 };
// A latency that was measured longer ago is not shown.
const RECENT_S = 600;

// The names of the rows that are open: they stay open while rows come and go.
const open = new Set();

const isFold = ({ kind }) => kind === "fold";
const isOfDeadLetters = ({ kind }) => kind === "dead letters";

export function stream(data, history) {
  return html`<p>${words(data)}</p>
    ${orNothing(data.flows.length, html`<div class="flows">
      <div class="flow-titles" aria-hidden="true"><span>read model or route</span><span>source</span><span class="number">events behind</span><span>latency</span><span class="number">dead letters</span><span>state</span></div>
      ${groups(data).map((group) => row(group, data, history))}
    </div>`)}`;
}

function words(data) {
  const parts = [
    html`${mark(data.state === "running" ? "good" : data.state === "catching up" ? "warn" : "bad", data.state)} at the pace <b>${data.pace}</b>`,
    html`, ${plural(data.eventsBehind, "event")} behind`,
  ];
  if (data.newestEventAgeS != null) parts.push(html`, newest event appended ${age(data.newestEventAgeS)} ago`);
  parts.push(html`, ${plural(data.deadLetters, "dead letter")}.`);
  return parts;
}

// What a user declares, by name: its flows, the sources of their events, and the flow that stands for all.
function groups(data) {
  const found = new Map();
  for (const flow of data.flows) {
    if (isOfDeadLetters(flow)) continue;
    const name = flow.belongsTo || flow.name;
    found.set(name, [...(found.get(name) ?? []), flow]);
  }
  return [...found].sort().map(([name, flows]) => {
    const main = flows.find((flow) => isFold(flow) && flow.stage === "live") ?? flows.find(isFold) ?? flows[0];
    const written = new Set(flows.map((flow) => flow.outputTopic));
    // What has no query reads a changelog.
    const topics = new Set(flows.filter(({ hasQuery }) => hasQuery).map((flow) => flow.sourceTopic));
    const deadLetters = data.flows.filter((flow) => isOfDeadLetters(flow) && topics.has(flow.name));
    // A re-keyed read model folds what its own route writes: its events are on the route's source.
    const sources = [...topics].filter((topic) => topic && !written.has(topic));
    return { name, main, flows: [...flows, ...deadLetters], sources };
  });
}

function row({ name, main, flows, sources }, data, history) {
  const deadLetters = flows.filter(isOfDeadLetters).reduce((sum, flow) => sum + (flow.records ?? 0), 0);
  // A version that is not live may lag without harm.
  const live = flows.filter(({ stage }) => !stage || stage === main.stage);
  const behind = live.map((flow) => flow.eventsBehind).filter((events) => events != null);
  const kind = isFold(main) ? "read model" : main.kind;
  const onToggle = ({ currentTarget }) => (currentTarget.open ? open.add(name) : open.delete(name));
  return html`<details class="flow" ?open=${open.has(name)} @toggle=${onToggle}>
    <summary>
      <span class="name"><b>${name}</b> <span class="soft">${kind}${versions(flows)}</span></span>
      ${cell("source", sources.join(", "))}
      ${cell("events behind", behind.length ? count(Math.max(...behind)) : "unknown", true)}
      ${cell("latency", latency(main, history?.models[name]))}
      ${cell("dead letters", deadLetters ? html`<b>${count(deadLetters)}</b>` : "0", true)}
      <span class="state"><span class="only-read">state </span>${state(live, main)}</span>
    </summary>
    ${queries(name, flows, data.pace)}
  </details>`;
}

// Its label is read out, and shown where the titles are not.
const cell = (label, content, isNumber) => html`<span class=${isNumber ? "number" : ""}><span class="label">${label} </span>${content}</span>`;

function versions(flows) {
  const others = flows.filter((flow) => isFold(flow) && flow.stage !== "live");
  return others.length ? `, ${others.map((flow) => `v${flow.version} ${flow.stage}${flow.report ? ` (${flow.report.phase})` : ""}`).join(", ")}` : "";
}

function latency(main, samples) {
  const newest = samples ? samples.latencyMs.findLastIndex((value) => value != null) : -1;
  if (newest >= 0 && Date.now() / 1000 - samples.at[newest] < RECENT_S) {
    const ms = samples.latencyMs[newest];
    return ms < 10000 ? `${count(ms)} ms` : age(ms / 1000);
  }
  return html`<span class="soft">${trigger(main, "real time")}</span>`;
}

function trigger(flow, pace) {
  if (flow.emitEveryS != null) return `every ${flow.emitEveryS} s`;
  return flow.latency === "second" ? "in batches" : pace;
}

// [state, word] of one flow.
function condition(flow) {
  if (flow.stillS != null) return ["bad", `standing still for ${age(flow.stillS)}`];
  if (!flow.hasQuery) return ["good", flow.newestOutputAgeS == null ? "no tick yet" : `tick ${age(flow.newestOutputAgeS)} ago`];
  return flow.report ? [PHASES[flow.report.phase] ?? "plain", flow.report.phase] : ["warn", "not running"];
}

function state(flows, main) {
  const own = condition(main);
  const worst = flows.map(condition).sort(([a], [b]) => WORST[a] - WORST[b])[0];
  return mark(...(WORST[worst[0]] < WORST[own[0]] ? worst : own));
}

const queries = (name, flows, pace) =>
  table(`Queries of ${name}`, [
    { title: "query", cell: (flow) => flow.query },
    { title: "computes", cell: computes },
    { title: "phase", cell: (flow) => mark(...condition(flow)) },
    { title: "events behind", isNumber: true, cell: (flow) => (flow.eventsBehind == null ? "" : count(flow.eventsBehind)) },
    { title: "rate", isNumber: true, cell: (flow) => (flow.ratePerS == null ? "" : rate(flow.ratePerS)) },
    { title: "pace", cell: (flow) => trigger(flow, pace) },
    { title: "restarts", isNumber: true, cell: (flow) => (flow.report ? count(flow.report.restarts) : "") },
    { title: "", isText: true, cell: (flow) => flow.report?.lastError ?? "" },
  ], flows);

function computes(flow) {
  if (isOfDeadLetters(flow)) return plural(flow.records ?? 0, "dead letter");
  if (isFold(flow)) return `v${flow.version}, ${flow.stage}`;
  const version = flow.hasQuery && flow.version != null ? ` of v${flow.version}, ${flow.stage}` : "";
  return `${flow.kind}${version}${flow.outputTopic && ` → ${flow.outputTopic}`}`;
}

// What a person should know first of the stream, given `add(state, text)`.
export function addProblems(data, add) {
  const failed = data.failedLaunches;
  const isFolding = data.state === "running" || data.state === "catching up";
  if (failed && isFolding) add("warn", `The stream driver runs again, after ${plural(failed.failures, "failure")}: ${failed.lastError}`);
  else if (failed) add("bad", `The stream driver has failed ${failed.failures === 1 ? "once" : `${failed.failures} times in a row`}: ${failed.lastError}`);
  else if (data.state === "not running") add("bad", "The stream is not running: nothing is folded.");
  if (data.state === "catching up") add("warn", `The stream is catching up: ${plural(data.eventsBehind, "event")} behind.`);
  for (const flow of data.flows) {
    const ahead = flow.eventTimeAhead;
    if (flow.stillS != null) add("bad", `${flow.name} v${flow.version} has stood still for ${age(flow.stillS)}.`);
    if (ahead) add("warn", `An event time of ${flow.name} v${flow.version} is ${age(ahead.aheadS)} ahead of its append time: ${ahead.event}.`);
    if (PHASES[flow.report?.phase] === "bad") add("bad", `The query ${flow.query} is ${flow.report.phase}: ${flow.report.lastError}`);
  }
  for (const { topic, stuckForS, openTransaction: held } of data.sources) {
    if (held) add("warn", `A transaction on ${topic} has been open for ${age(held.openS)}: ${plural(held.records, "record")} wait until its producer or the broker ends it.`);
    if (stuckForS) add("bad", `Dead letters of ${topic} are not written.`);
  }
}
