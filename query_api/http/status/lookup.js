// The form that looks up a key: the state, which node answered, the age of the answer, and links to its explanation and its JSON.

import { html, nothing, render } from "./lit-html.js";
import { age, count, time } from "./words.js";

const form = document.getElementById("lookup");
const answer = document.getElementById("answer");

// Amounts keep their decimals: the text of a number, where the browser tells it.
const exact = (_name, value, context) => (typeof value === "number" && context?.source !== undefined ? context.source : value);

function shown(value) {
  if (value === null) return html`<span class="soft">null</span>`;
  return typeof value === "object" ? html`<code>${JSON.stringify(value)}</code>` : String(value);
}

function found(record, headers, path) {
  const model = record.readModel;
  const node = headers.get("Foldlake-Node");
  const isHere = node === document.body.dataset.node;
  const lagMs = Number(headers.get("Foldlake-Lag-Ms"));
  const explain = new URLSearchParams({ readModel: model, key: record.key, version: record.version });
  return html`
    <h3>${record.key}</h3>
    <dl>${Object.entries(record.state).map(([name, value]) => html`<dt>${name}</dt><dd>${shown(value)}</dd>`)}</dl>
    <dl>
      <dt>Answered by</dt><dd>${node}, ${headers.get("Foldlake-Role")} of the key's partition${isHere ? "" : ", by way of this node"}</dd>
      <dt>Age</dt><dd>at most ${lagMs < 10000 ? `${count(lagMs)} ms` : age(lagMs / 1000)} (it has everything up to ${time(headers.get("Foldlake-As-Of"))})</dd>
      <dt>Version</dt><dd>v${record.version} of ${model}</dd>
      <dt>Made of</dt><dd>${count(Number(record.eventCount))} event${Number(record.eventCount) === 1 ? "" : "s"}; the newest is at partition ${record.sourcePartition}, offset ${record.sourceOffset}, and occurred at ${time(record.occurredOn)}</dd>
    </dl>
    <p><a href=${`/explain?${explain}`}>Explain</a> · <a href=${path}>The record as JSON</a></p>`;
}

function failed(problem) {
  return html`<p class="error"><b>${problem.title}</b>: ${problem.detail} ${problem.advice ?? nothing}</p>`;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { model, version, key } = Object.fromEntries(new FormData(form));
  const path = `/api/read-models/${encodeURIComponent(model)}/records?key=${encodeURIComponent(key)}${version ? `&version=${version}` : ""}`;
  try {
    const response = await fetch(path);
    const body = JSON.parse(await response.text(), exact);
    render(response.ok ? found(body, response.headers, path) : failed(body), answer);
  } catch (error) {
    render(failed({ title: "No answer", detail: `${document.body.dataset.node} does not answer: ${error.message}.` }), answer);
  }
});

// The versions that can be asked for, as they come and go; the choice stays.
let versions = [];

function showVersions() {
  const select = form.elements.version;
  const chosen = select.value;
  const all = versions.filter((v) => v.readModel === form.elements.model.value && v.stage !== "building");
  const live = all.find((v) => v.stage === "live");
  const wanted = [["", live ? `live (v${live.version})` : "live"], ...all.filter((v) => v !== live).map((v) => [String(v.version), `v${v.version}, ${v.stage}`])];
  if (wanted.join() === [...select.options].map((o) => [o.value, o.text]).join()) return;
  select.replaceChildren(...wanted.map(([value, text]) => new Option(text, value)));
  select.value = wanted.some(([value]) => value === chosen) ? chosen : "";
}

form.elements.model.addEventListener("change", showVersions);

export function offerVersions(data) {
  versions = data;
  showVersions();
}
