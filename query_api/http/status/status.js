// The status page: asks /api/status again and again, and shows what has changed. What has the focus stays as it is.

import { html, nothing, render } from "./lit-html.js";
import { offerVersions } from "./lookup.js";
import { redraw, showHistory } from "./plots.js";
import { problems, SECTIONS } from "./sections.js";
import { age, plural } from "./words.js";

const INTERVAL_MS = 2000;
const HISTORY_INTERVAL_MS = 10000;
const TIMEOUT_MS = 8000;
// A section that is older than this says so.
const OLD_S = 30;

const element = (id) => document.getElementById(id);
const isOpen = () => !document.hidden && element("pause").getAttribute("aria-pressed") === "false";
let history = null;
let heardAt = null;

async function ask(names) {
  const response = await fetch(`/api/status?sections=${names.join()}`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) throw new Error(`the node answers ${response.status}`);
  return (await response.json()).sections;
}

function showSection(name, section) {
  const { data, error, ageS } = section;
  const known = data === null ? "" : ` What follows was known ${age(ageS)} ago.`;
  const note = error
    ? html`<p class="error">${error}${known}</p>`
    : data !== null && ageS > OLD_S
      ? html`<p class="soft">As of ${age(ageS)} ago.</p>`
      : nothing;
  render(html`${note}${data === null ? (error ? nothing : html`<p class="soft">Reading …</p>`) : SECTIONS[name](data, history)}`, element(name));
}

// The heading is announced by screen readers, so it changes only when the state does.
function showOverall(found) {
  const worst = found.length === 0 ? "good" : found[0].state;
  const text = found.length === 0 ? "No problems" : `${plural(found.length, "thing")} ${found.length === 1 ? "needs" : "need"} attention`;
  const heading = element("overall");
  if (heading.textContent !== text) heading.textContent = text;
  heading.dataset.state = worst;
  document.title = `${found.length ? `(${found.length}) ` : ""}Status · Foldlake`;
  render(found.map(({ state, text: line }) => html`<li data-state=${state}>${line}</li>`), element("problems"));
}

function showUpdated(text) {
  element("updated").textContent = text;
}

async function update() {
  try {
    const sections = await ask(Object.keys(SECTIONS));
    heardAt = Date.now();
    for (const [name, section] of Object.entries(sections)) showSection(name, section);
    if (sections.versions.data) offerVersions(sections.versions.data);
    showOverall(problems(sections));
    showUpdated(`updated ${new Date(heardAt).toLocaleTimeString()}`);
  } catch (error) {
    const lost = heardAt === null ? "" : ` What follows is ${age((Date.now() - heardAt) / 1000)} old.`;
    showOverall([{ state: "bad", text: `${document.body.dataset.node} does not answer (${error.message}).${lost} Any other node shows the same page.` }]);
  }
}

async function updateHistory() {
  try {
    const section = (await ask(["history"])).history;
    history = section.data ?? history;
  } catch {
    return; // the other request says that the node does not answer
  }
  if (history) showHistory(history, element("history-model").value);
}

function repeat(work, intervalMs) {
  const turn = async () => {
    if (isOpen()) await work();
    setTimeout(turn, intervalMs);
  };
  turn();
  document.addEventListener("visibilitychange", () => isOpen() && work());
}

element("pause").addEventListener("click", ({ currentTarget }) => {
  const isPaused = currentTarget.getAttribute("aria-pressed") === "false";
  currentTarget.setAttribute("aria-pressed", String(isPaused));
  showUpdated(isPaused ? "updates are paused" : "");
});
element("history-model").addEventListener("change", () => history && showHistory(history, element("history-model").value));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

repeat(update, INTERVAL_MS);
repeat(updateHistory, HISTORY_INTERVAL_MS);
