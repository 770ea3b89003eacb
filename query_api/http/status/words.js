// Numbers, ages and times as words, and the marks and tables of all sections.

import { html, nothing } from "./lit-html.js";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export const count = (value) => (value == null ? "unknown" : whole.format(value));
export const rate = (value) => (value == null ? "unknown" : `${value < 10 ? oneDigit.format(value) : whole.format(value)}/s`);
export const sentence = (text) => (/[.?!]$/.test(text) ? text : `${text}.`);
export const plural = (number, noun) => `${whole.format(number)} ${noun}${number === 1 ? "" : "s"}`;

export function age(seconds) {
  if (seconds == null) return "unknown";
  const total = Math.max(0, Math.round(seconds));
  if (total < 60) return `${total} s`;
  if (total < 3600) return `${Math.floor(total / 60)} min`;
  if (total < 86400) return `${Math.floor(total / 3600)} h ${Math.floor((total % 3600) / 60)} min`;
  return `${Math.floor(total / 86400)} d ${Math.floor((total % 86400) / 3600)} h`;
}

export const since = (iso) => (iso ? `${age((Date.now() - Date.parse(iso)) / 1000)} ago` : "unknown");

const BYTES = ["B", "kB", "MB", "GB", "TB"];

export function bytes(value) {
  if (value == null) return "unknown";
  let unit = 0;
  for (; value >= 1000 && unit < BYTES.length - 1; unit++) value /= 1000;
  return `${value < 10 && unit ? oneDigit.format(value) : whole.format(value)} ${BYTES[unit]}`;
}

// The time in the reader's zone, with the whole of it for machines and as a tooltip.
export function time(iso) {
  if (!iso) return "unknown";
  const at = new Date(iso);
  const isToday = at.toDateString() === new Date().toDateString();
  const options = isToday ? { timeStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" };
  return html`<time datetime=${iso} title=${iso}>${new Intl.DateTimeFormat(undefined, options).format(at)}</time>`;
}

// A state is always in words; the colour repeats it.
export const mark = (state, text) => html`<span class="mark" data-state=${state}>${text}</span>`;

// columns: [{title, cell: (row) => content, isNumber, isText}]; the first one names the row, and text wraps.
export function table(caption, columns, rows) {
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${caption}>
    <table>
      <caption class="only-read">${caption}</caption>
      <thead><tr>${columns.map((column) => html`<th scope="col" class=${kind(column)}>${column.title || html`<span class="only-read">notes</span>`}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${columns.map((column, index) =>
        index === 0 ? html`<th scope="row">${column.cell(row)}</th>` : html`<td class=${kind(column)}>${column.cell(row)}</td>`)}</tr>`)}</tbody>
    </table>
  </div>`;
}

const kind = ({ isNumber, isText }) => (isNumber ? "number" : isText ? "text" : "");

export const none = (text) => html`<p class="soft">${text}</p>`;
export const orNothing = (condition, content) => (condition ? content : nothing);
