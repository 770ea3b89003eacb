// The plots of the last hour, drawn with uPlot from the section `history`, and the same values as a table.

import { html, nothing, render } from "./lit-html.js";
import { count, none, rate, table } from "./words.js";

const HEIGHT = 190;
const TABLE_STEP_S = 300;
const milliseconds = (value) => (value == null ? "none" : value < 10000 ? `${count(value)} ms` : `${count(value / 1000)} s`);

const LINEAR = { range: (_plot, _min, max) => [0, Math.max(1, max ?? 1) * 1.08] };
const power = (round, value) => 10 ** round(Math.log10(Math.max(1, value ?? 1)));
const LOGARITHMIC = { distr: 3, range: (_plot, min, max) => [power(Math.floor, min), Math.max(10, power(Math.ceil, max))] };

// columns: [field, label, colour, dashes]; every line has a colour and a form of its own.
const PLOTS = {
  lag: { columns: [["eventsBehind", "events behind", "one", []]], format: count, unit: "events behind" },
  latency: {
    columns: [["latencyMs", "median", "one", []], ["latencyMaxMs", "maximum", "two", [6, 4]]],
    format: milliseconds,
    unit: "median latency",
    isLogarithmic: true, // from milliseconds to the minutes after an outage
  },
  throughput: {
    columns: [["appendedPerS", "appended", "two", [6, 4]], ["foldedPerS", "folded", "one", []]],
    format: rate,
    unit: "appended",
  },
};

const element = (id) => document.getElementById(id);
const drawn = {}; // name -> {plot, width}
let shown = null; // {samples, intervalS}

// Lets the line end where samples are missing.
function withGaps(samples, intervalS) {
  const fields = Object.keys(samples);
  const result = Object.fromEntries(fields.map((field) => [field, []]));
  samples.at.forEach((at, index) => {
    if (index > 0 && at - samples.at[index - 1] > 2.5 * intervalS) {
      for (const field of fields) result[field].push(field === "at" ? samples.at[index - 1] + intervalS : null);
    }
    for (const field of fields) result[field].push(samples[field][index]);
  });
  return result;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function options(name, width) {
  const { columns, isLogarithmic } = PLOTS[name];
  const labelled = (_plot, ticks) => ticks.map((tick) => (isLogarithmic && !isPower(tick) ? null : tick));
  const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, font: "12px system-ui, sans-serif" };
  return {
    width,
    height: HEIGHT,
    scales: { y: isLogarithmic ? LOGARITHMIC : LINEAR },
    axes: [{ ...axis, values: (_plot, ticks) => ticks.map(clock), space: 56 }, {
      ...axis, size: 62, grid: { ...axis.grid, filter: labelled }, ticks: { ...axis.ticks, filter: labelled },
      values: (_plot, ticks) => ticks.map((tick) => (isLogarithmic && !isPower(tick) ? null : shortNumber(tick))),
    }],
    series: [{}, ...columns.map(([, , ink, dash]) => ({ dash, stroke: colour(ink), width: 2, spanGaps: false, points: { show: isAlone, size: 5 } }))],
    cursor: { sync: { key: "history" }, drag: { x: false, y: false } },
    legend: { show: false },
    hooks: { setCursor: [(plot) => showValues(name, plot)] },
  };
}

// A value between two gaps is no line, and would not be seen.
function isAlone(plot, series, from, to) {
  const values = plot.data[series];
  const alone = [];
  for (let index = from; index <= to; index++)
    if (values[index] != null && values[index - 1] == null && values[index + 1] == null) alone.push(index);
  return alone.length > 0 ? alone : false;
}

function clock(at, index, ticks) {
  const isClose = ticks.length > 1 && ticks[1] - ticks[0] < 60;
  return new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: isClose ? "2-digit" : undefined, hourCycle: "h23" });
}

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const isPower = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;
const shortNumber = (value) => compact.format(value);

function draw(name) {
  const holder = element(`plot-${name}`);
  const { columns, format, unit, isLogarithmic } = PLOTS[name];
  // A logarithm needs more than zero.
  const least = (value) => (isLogarithmic && value !== null ? Math.max(1, value) : value);
  const data = [shown.samples.at, ...columns.map(([field]) => shown.samples[field].map(least))];
  const width = Math.max(200, Math.floor(holder.clientWidth));
  const now = drawn[name];
  if (now) {
    if (now.width !== width) {
      now.plot.setSize({ width, height: HEIGHT });
      now.width = width;
    }
    now.plot.setData(data);
  } else {
    drawn[name] = { plot: new uPlot(options(name, width), data, holder), width };
  }
  const newest = data[1].findLast((value) => value != null);
  showValues(name, drawn[name].plot);
  holder.setAttribute("aria-label", `${element(`${name}-caption`).textContent}. Newest: ${newest == null ? "none" : format(newest)} ${unit}.`);
}

// The values below the cursor, or else the newest ones, each with its line.
function showValues(name, plot) {
  const { columns, format } = PLOTS[name];
  const [times, ...values] = plot.data;
  const at = plot.cursor.idx;
  const shownValue = (column) => (at == null ? column.findLast((value) => value != null) : column[at]);
  const items = columns.map(([, label, ink], index) => {
    const value = shownValue(values[index]);
    return html`<span><i class=${`line ${ink}`}></i> ${label} ${value == null ? "none" : format(value)}</span>`;
  });
  render(html`${at == null ? "now" : new Date(times[at] * 1000).toLocaleTimeString()}: ${items}`, element(`${name}-values`));
}

export function redraw() {
  for (const name of Object.keys(drawn)) {
    drawn[name].plot.destroy();
    delete drawn[name];
  }
  if (shown) showAll();
}

function showAll() {
  const isEmpty = shown.samples.at.length === 0;
  if (!isEmpty) Object.keys(PLOTS).forEach(draw);
  element("history-note").textContent = isEmpty
    ? "Nothing has been measured yet: a sample follows every 10 seconds."
    : `Lag: events on the source topic that are not folded yet. Latency: from the append of an event to the commit of its state in the store of ${document.body.dataset.node}. Sampled every ${shown.intervalS} s, kept in memory.`;
  showTable();
}

function showTable() {
  if (!element("history-values").open || !shown) return;
  const { at } = shown.samples;
  const rows = [];
  for (let index = 0; index < at.length; index++) {
    const start = Math.floor(at[index] / TABLE_STEP_S) * TABLE_STEP_S;
    if (rows.at(-1)?.start !== start) rows.push({ start, from: index, to: index });
    else rows.at(-1).to = index;
  }
  const of = (field, join) => (row) => {
    const values = shown.samples[field].slice(row.from, row.to + 1).filter((value) => value != null);
    return values.length ? join(values) : null;
  };
  const most = (values) => Math.max(...values);
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  render(
    rows.length === 0 ? none("Nothing has been measured yet.") : table("The last hour, in steps of five minutes, newest first", [
      { title: "from", cell: (row) => new Date(row.start * 1000).toLocaleTimeString(undefined, { timeStyle: "short" }) },
      { title: "most events behind", isNumber: true, cell: (row) => count(of("eventsBehind", most)(row)) },
      { title: "latency, mean of medians", isNumber: true, cell: (row) => milliseconds(of("latencyMs", mean)(row)) },
      { title: "latency, maximum", isNumber: true, cell: (row) => milliseconds(of("latencyMaxMs", most)(row)) },
      { title: "appended", isNumber: true, cell: (row) => rate(of("appendedPerS", mean)(row)) },
      { title: "folded", isNumber: true, cell: (row) => rate(of("foldedPerS", mean)(row)) },
    ], rows.reverse()),
    element("history-table"),
  );
}

const EMPTY = { at: [], eventsBehind: [], latencyMs: [], latencyMaxMs: [], appendedPerS: [], foldedPerS: [] };

export function showHistory(data, model) {
  shown = { samples: withGaps(data.models[model] ?? EMPTY, data.intervalS), intervalS: data.intervalS };
  showAll();
}

element("history-values").addEventListener("toggle", showTable);
new ResizeObserver(() => shown && showAll()).observe(element("plot-lag"));
