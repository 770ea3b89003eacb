// The map of a read model: items from a snapshot and the stream of changes after it, drawn on a canvas.

const { readModel, latitude: LATITUDE, longitude: LONGITUDE } = document.body.dataset;
const API = `/api/read-models/${encodeURIComponent(readModel)}`;
const MOVE_MS = 600; // how long an item takes to its new place
const TRAIL = 6; // earlier places that are drawn
const MIN_DEGREES = 0.002; // the smallest height of the map
const RETRY_MS = [1000, 2000, 5000, 10000];
const POSITION_FIELDS = ["eventCount", "sourcePartition", "sourceOffset", "occurredOn"];
const COLOURS = ["#1f77b4", "#e07b1a", "#2a9d55", "#c83e4d", "#8a63c9", "#8c5a3c", "#d65fa8", "#6f7d8a"];
const MAX_COLOURS = COLOURS.length;

const element = (id) => document.getElementById(id);
const canvas = element("map");
const pen = canvas.getContext("2d");

// -- Items ---------------------------------------------------------------------------------------------------------

const items = new Map(); // key -> {record, at: [lat, lon], from: [lat, lon], movedAt, trail: [[lat, lon]]}
let updatedAt = null;
let selected = null;

function put(record, now, isChange) {
  const known = items.get(record.key);
  if (known && record.eventCount < known.record.eventCount) return; // an older record, repeated after a crash
  const at = [Number(record.state[LATITUDE]), Number(record.state[LONGITUDE])];
  if (record.state[LATITUDE] == null || record.state[LONGITUDE] == null || !at.every(Number.isFinite)) {
    remove(record.key);
    return;
  }
  const trail = known ? [...known.trail, known.at].slice(-TRAIL) : [];
  const from = known && isChange ? placeOf(known, now) : at;
  items.set(record.key, { record, at, from, movedAt: now, trail: isChange ? trail : [] });
  if (isChange) updatedAt = Date.now();
}

function remove(key) {
  if (items.delete(key)) updatedAt = Date.now();
}

function placeOf(item, now) {
  const part = Math.min(1, (now - item.movedAt) / MOVE_MS);
  const eased = part * (2 - part);
  return [0, 1].map((axis) => {
    const way = axis === 1 ? shortestWay(item.at[1] - item.from[1]) : item.at[0] - item.from[0];
    return item.from[axis] + way * eased;
  });
}

const shortestWay = (degrees) => ((((degrees + 180) % 360) + 360) % 360) - 180;

// -- The stream ----------------------------------------------------------------------------------------------------

let source = null;
let failures = 0;

function connect() {
  const wanted = new URLSearchParams(location.search);
  const query = new URLSearchParams({ snapshot: "true" });
  for (const name of ["within", "prefix"]) if (wanted.has(name)) query.set(name, wanted.get(name));
  source = new EventSource(`${API}/changes?${query}`);
  const on = (name, handle) =>
    source.addEventListener(name, (event) => {
      handle(JSON.parse(event.data));
      needsDrawing = true;
    });
  on("snapshot", () => items.clear());
  on("present", (record) => put(record, performance.now(), false));
  on("changed", (record) => put(record, performance.now(), true));
  on("left", ({ key }) => remove(key));
  on("removed", ({ key }) => remove(key));
  on("live", () => {
    failures = 0;
    showConnection("live", "live");
  });
  on("reset", ({ detail }) => showConnection("connecting", detail));
  on("closed", ({ detail }) => showConnection("interrupted", detail));
  source.onerror = () => {
    if (source.readyState === EventSource.CONNECTING) {
      // The browser connects again by itself, and continues after the last event.
      showConnection("interrupted", "interrupted, connecting again");
      return;
    }
    source.close();
    showConnection("interrupted", "the node refuses the stream, trying again");
    setTimeout(connect, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]);
  };
}

function showConnection(state, text) {
  element("connection").dataset.state = state;
  element("connection").textContent = text;
}

// -- The view ------------------------------------------------------------------------------------------------------

const view = { lat: 20, lon: 0, height: 140, isFitted: true }; // centre and height, in degrees of latitude
let size = { width: 1, height: 1 };
let needsDrawing = true;

// Degrees of longitude are shorter by the cosine of the latitude.
const scale = () => {
  const y = size.height / view.height;
  return { x: y * Math.max(0.05, Math.cos((view.lat * Math.PI) / 180)), y };
};

function toScreen([lat, lon]) {
  const { x, y } = scale();
  return [size.width / 2 + shortestWay(lon - view.lon) * x, size.height / 2 - (lat - view.lat) * y];
}

function fit() {
  if (!items.size) return;
  const all = [...items.values()].map((item) => item.at);
  const lats = all.map(([lat]) => lat);
  // Around the date line, longitudes from 0 to 360 are closer together.
  const ranges = [all.map(([, lon]) => lon), all.map(([, lon]) => (lon < 0 ? lon + 360 : lon))].map((lons) => [
    lons.reduce((a, b) => Math.min(a, b)),
    lons.reduce((a, b) => Math.max(a, b)),
  ]);
  const [west, east] = ranges[0][1] - ranges[0][0] <= ranges[1][1] - ranges[1][0] ? ranges[0] : ranges[1];
  const south = lats.reduce((a, b) => Math.min(a, b));
  const north = lats.reduce((a, b) => Math.max(a, b));
  const lat = (south + north) / 2;
  const shrink = Math.max(0.05, Math.cos((lat * Math.PI) / 180));
  const wanted = Math.max(north - south, ((east - west) * shrink * size.height) / size.width, MIN_DEGREES) * 1.15;
  // Small movements at the edge do not move the whole map.
  const isMuchTooLarge = view.height > wanted * 1.3;
  const isInside = all.every((place) => {
    const [x, y] = toScreen(place);
    return x > 10 && y > 10 && x < size.width - 10 && y < size.height - 10;
  });
  if (isInside && !isMuchTooLarge) return;
  Object.assign(view, { lat, lon: shortestWay((west + east) / 2), height: Math.min(180, wanted) });
}

function zoom(factor, x = size.width / 2, y = size.height / 2) {
  const before = scale();
  view.height = Math.min(180, Math.max(MIN_DEGREES, view.height * factor));
  const after = scale();
  const [dx, dy] = [x - size.width / 2, y - size.height / 2];
  // The place under the pointer stays where it is.
  pan(dx * (1 - before.x / after.x), dy * (1 - before.y / after.y), before);
}

function pan(dx, dy, { x, y } = scale()) {
  view.lon = shortestWay(view.lon + dx / x);
  view.lat = Math.min(90, Math.max(-90, view.lat - dy / y));
  view.isFitted = false;
  needsDrawing = true;
}

// -- Drawing -------------------------------------------------------------------------------------------------------

const STEPS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 45];
const stepFor = (degrees) => STEPS.find((step) => step >= degrees) ?? 45;
let theme = {};

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ground", "ink", "soft", "line", "strong", "accent"]) theme[name] = style.getPropertyValue(`--${name}`);
  needsDrawing = true;
}

function degreesText(value, step, positive, negative) {
  const digits = Math.max(0, Math.ceil(-Math.log10(step)));
  return `${Math.abs(value).toFixed(digits)}°${Math.abs(value) < step / 2 ? "" : value > 0 ? positive : negative}`;
}

function drawGrid() {
  const { x, y } = scale();
  const latStep = stepFor(70 / y);
  const lonStep = stepFor(90 / x);
  pen.font = "11px system-ui, sans-serif";
  pen.lineWidth = 1;
  const south = Math.max(-90, view.lat - view.height / 2);
  const north = Math.min(90, view.lat + view.height / 2);
  for (let index = Math.ceil(south / latStep); index * latStep <= north; index++) {
    const [, at] = toScreen([index * latStep, view.lon]);
    line(0, at, size.width, at, index === 0);
    label(degreesText(index * latStep, latStep, "N", "S"), 6, at - 4);
  }
  const half = Math.min(180, size.width / 2 / x);
  for (let index = Math.ceil((view.lon - half) / lonStep); index * lonStep <= view.lon + half; index++) {
    const lon = shortestWay(index * lonStep);
    const at = size.width / 2 + (index * lonStep - view.lon) * x;
    line(at, 0, at, size.height, lon === 0);
    label(degreesText(lon, lonStep, "E", "W"), at + 4, size.height - 6);
  }
}

function line(x1, y1, x2, y2, isStrong) {
  pen.strokeStyle = isStrong ? theme.strong : theme.line;
  pen.beginPath();
  pen.moveTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
  pen.lineTo(Math.round(x2) + 0.5, Math.round(y2) + 0.5);
  pen.stroke();
}

function label(text, x, y) {
  pen.fillStyle = theme.soft;
  pen.fillText(text, x, y);
}

function drawItem(key, item, now) {
  const place = placeOf(item, now);
  const [x, y] = toScreen(place);
  if (x < -50 || y < -50 || x > size.width + 50 || y > size.height + 50) return;
  const colour = colourOf(item.record);
  if (item.trail.length) {
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    pen.globalAlpha = 0.35;
    pen.beginPath();
    for (const [index, earlier] of [...item.trail, place].entries()) {
      const point = toScreen(earlier);
      if (index) pen.lineTo(...point);
      else pen.moveTo(...point);
    }
    pen.stroke();
    pen.globalAlpha = 1;
  }
  const isSelected = key === selected;
  pen.fillStyle = colour;
  pen.beginPath();
  pen.arc(x, y, isSelected ? 8 : 5, 0, 2 * Math.PI);
  pen.fill();
  pen.lineWidth = isSelected ? 3 : 1.5;
  pen.strokeStyle = isSelected ? theme.accent : theme.ground;
  pen.stroke();
  if (isSelected) {
    pen.font = "bold 12px system-ui, sans-serif";
    pen.fillStyle = theme.ink;
    pen.fillText(key, x + 12, y + 4);
  }
}

function draw(now) {
  const moving = [...items.values()].some((item) => now - item.movedAt < MOVE_MS);
  if (needsDrawing || moving) {
    needsDrawing = moving;
    if (view.isFitted) fit();
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = theme.ground;
    pen.fillRect(0, 0, size.width, size.height);
    drawGrid();
    for (const [key, item] of items) if (key !== selected) drawItem(key, item, now);
    if (items.has(selected)) drawItem(selected, items.get(selected), now);
    element("count").textContent = items.size;
    showRecord();
  }
  requestAnimationFrame(draw);
}

// -- Colours: by a text field that has few values ------------------------------------------------------------------

let colourField = null;
let values = [];
let isFieldChosen = false;

function colourOf(record) {
  const index = colourField === null ? -1 : values.indexOf(record.state[colourField]);
  return index < 0 ? theme.accent : COLOURS[index % MAX_COLOURS];
}

function chooseColours() {
  const found = {};
  for (const { record } of items.values())
    for (const [name, value] of Object.entries(record.state))
      if (typeof value === "string") (found[name] ??= new Set()).add(value);
  const fields = Object.keys(found).filter((name) => found[name].size <= MAX_COLOURS);
  if (!isFieldChosen) colourField = fields.sort((a, b) => found[b].size - found[a].size)[0] ?? null;
  values = colourField !== null && found[colourField] ? [...found[colourField]].sort() : [];
  const select = element("colour");
  const options = fields.sort();
  if ([...select.options].map((option) => option.value).join() !== options.join())
    select.replaceChildren(...options.map((name) => new Option(name, name)));
  select.value = colourField;
  element("colours").hidden = options.length < 2;
  const entries = values.length > 1 ? values : [];
  const legend = element("legend");
  if (legend.dataset.values !== entries.join("\n")) {
    legend.dataset.values = entries.join("\n");
    legend.replaceChildren(...entries.map((value, index) => legendEntry(value, COLOURS[index])));
  }
  needsDrawing = true;
}

function legendEntry(text, colour) {
  const entry = document.createElement("li");
  const dot = element("dot").content.cloneNode(true);
  dot.querySelector("circle").setAttribute("fill", colour);
  entry.append(dot, text);
  return entry;
}

// -- The record of the selected item -------------------------------------------------------------------------------

let shown = null;

function showRecord() {
  const item = items.get(selected);
  const panel = element("record");
  if (selected === null) {
    panel.hidden = true;
    shown = null;
    return;
  }
  const record = item?.record ?? null;
  if (!panel.hidden && record === shown) return;
  shown = record;
  panel.hidden = false;
  element("key").textContent = selected;
  const fields = record
    ? [...Object.entries(record.state), ...POSITION_FIELDS.map((name) => [name, record[name]])]
    : [["", "no longer on the map"]];
  element("fields").replaceChildren(
    ...fields.flatMap(([name, value]) => {
      const [term, text] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = name;
      text.textContent = typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
      return [term, text];
    }),
  );
  element("link").href = `${API}/records?key=${encodeURIComponent(selected)}`;
}

function itemAt(x, y) {
  const now = performance.now();
  let nearest = null;
  let distance = 18;
  for (const [key, item] of items) {
    const [itemX, itemY] = toScreen(placeOf(item, now));
    const away = Math.hypot(itemX - x, itemY - y);
    if (away < distance) [nearest, distance] = [key, away];
  }
  return nearest;
}

function select(key) {
  selected = key;
  needsDrawing = true;
}

// -- Input ---------------------------------------------------------------------------------------------------------

const pointers = new Map(); // id -> {x, y, startX, startY}

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY, startX: event.offsetX, startY: event.offsetY });
});
canvas.addEventListener("pointermove", (event) => {
  const pointer = pointers.get(event.pointerId);
  if (!pointer) return;
  const [dx, dy] = [event.offsetX - pointer.x, event.offsetY - pointer.y];
  const isClick = Math.hypot(event.offsetX - pointer.startX, event.offsetY - pointer.startY) < 4;
  if (pointers.size === 1 && !isClick) pan(-dx, -dy);
  if (pointers.size === 2) {
    const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
    const before = Math.hypot(pointer.x - other.x, pointer.y - other.y);
    const after = Math.hypot(event.offsetX - other.x, event.offsetY - other.y);
    if (before > 0 && after > 0) zoom(before / after, other.x, other.y);
  }
  Object.assign(pointer, { x: event.offsetX, y: event.offsetY });
});
canvas.addEventListener("pointerup", (event) => {
  const pointer = pointers.get(event.pointerId);
  pointers.delete(event.pointerId);
  if (pointer && Math.hypot(event.offsetX - pointer.startX, event.offsetY - pointer.startY) < 4)
    select(itemAt(event.offsetX, event.offsetY));
});
canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
canvas.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, event.offsetX, event.offsetY);
  },
  { passive: false },
);
canvas.addEventListener("keydown", (event) => {
  const ways = { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] };
  if (ways[event.key]) pan(...ways[event.key]);
  else if (event.key === "+") zoom(1 / 1.4);
  else if (event.key === "-") zoom(1.4);
  else if (event.key === "Escape") select(null);
  else return;
  event.preventDefault();
});
element("closer").onclick = () => zoom(1 / 1.6);
element("farther").onclick = () => zoom(1.6);
element("fit").onclick = () => {
  view.isFitted = true;
  view.height = 180;
  needsDrawing = true;
};
element("close").onclick = () => select(null);
element("colour").onchange = (event) => {
  colourField = event.target.value;
  isFieldChosen = true;
  chooseColours();
};

function showAge() {
  if (updatedAt === null) return;
  const s = Math.floor((Date.now() - updatedAt) / 1000);
  element("age").textContent = s < 120 ? `${s} s ago` : `${Math.floor(s / 60)} min ago`;
}

new ResizeObserver(() => {
  const ratio = window.devicePixelRatio || 1;
  size = { width: canvas.clientWidth || 1, height: canvas.clientHeight || 1 };
  canvas.width = Math.round(size.width * ratio);
  canvas.height = Math.round(size.height * ratio);
  needsDrawing = true;
}).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readTheme);
readTheme();
setInterval(showAge, 500);
setInterval(chooseColours, 1000);
connect();
requestAnimationFrame(draw);
