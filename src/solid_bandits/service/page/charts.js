// Charts as SVG, drawn for the width that they have: text keeps its size. Nothing here is text that is taken for markup.
import * as words from "./words.js";

const QUARTER = 15;
const SPACE = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function canvas(width, height, label) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
}

// Round ends of an axis from low to high, with about so many steps.
function ticks(low, high, wanted) {
  const rough = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const found = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + 1e-9 * step; tick += step) found.push(tick);
  return { found, places: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

const fixed = (value, places) =>
  (Math.abs(value) < 1e-12 ? 0 : value)
    .toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places })
    .replaceAll("-", "−");

// Rows of a mean and its interval on one scale: [{name, kind, estimate}].
export function estimates(place, rows) {
  const known = rows.filter((row) => row.estimate.value !== null);
  if (!known.length) return place.replaceChildren();
  const width = Math.max(place.clientWidth, 240);
  const pitch = 54, height = rows.length * pitch + 26;
  const all = known.flatMap(({ estimate }) => [estimate.low ?? estimate.value, estimate.high ?? estimate.value]);
  let [low, high] = [Math.min(...all), Math.max(...all)];
  const pad = (high - low || Math.abs(high) || 1) * 0.06;
  [low, high] = [low - pad, high + pad];
  const x = (value) => 6 + ((value - low) / (high - low)) * (width - 12);
  const said = known.map(({ name, estimate }) => `${name} ${words.mean(estimate)} ${words.interval(estimate)}`);
  const drawing = canvas(width, height, `Value per decision: ${said.join("; ")}`);
  const marks = ticks(low, high, width < 420 ? 3 : 6);
  for (const tick of marks.found) {
    drawing.append(
      svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: 4, y2: height - 22 }),
      svg("text", { x: x(tick), y: height - 6, "text-anchor": "middle" }, fixed(tick, marks.places)),
    );
  }
  rows.forEach(({ name, kind, estimate }, place) => {
    const y = place * pitch + 34;
    drawing.append(
      svg("text", { class: "name", x: 0, y: y - 14 }, name),
      svg("text", { class: "number", x: width, y: y - 14, "text-anchor": "end" },
        estimate.value === null ? "the log cannot say" : `${words.mean(estimate)} ${words.interval(estimate)}`),
    );
    if (estimate.value === null) return;
    if (estimate.low !== null)
      drawing.append(svg("line", { class: `reach ${kind}`, x1: x(estimate.low), x2: x(estimate.high), y1: y, y2: y }));
    drawing.append(svg("circle", { class: kind, cx: x(estimate.value), cy: y, r: 5 }));
  });
  place.replaceChildren(drawing);
}

// Decisions and rewards per minute; `read` is told the minute under the pointer, or null.
export function rates(place, given, read) {
  // A quarter of an hour, where nothing happened before it.
  const busy = given.decisions.slice(0, -QUARTER).some(Boolean) || given.rewards.slice(0, -QUARTER).some(Boolean);
  const cut = (values) => (busy ? values : values.slice(-QUARTER - 1));
  const minutes = { ...given, decisions: cut(given.decisions), rewards: cut(given.rewards) };
  // The last minute is not over: it is drawn as if it went on like this, once that says something.
  const early = minutes.elapsed < 10;
  const whole = (values) => [...values.slice(0, -1), ...(early ? [] : [(values.at(-1) * 60) / minutes.elapsed])];
  const decisions = whole(minutes.decisions), rewards = whole(minutes.rewards);
  const start = minutes.last - 60 * (minutes.decisions.length - 1);
  const width = Math.max(place.clientWidth, 240), height = 226, left = 44, bottom = 22, top = 8;
  const most = Math.max(1, ...decisions, ...rewards);
  const marks = ticks(0, most, 4);
  const step = marks.found.length > 1 ? marks.found[1] : 1;
  const ceiling = Math.ceil(most / step) * step;
  const x = (minute) => left + (minute / (decisions.length - 1)) * (width - left - 6);
  const y = (value) => top + (1 - value / ceiling) * (height - top - bottom);
  const total = (values) => words.count(values.reduce((a, b) => a + b, 0));
  const drawing = canvas(width, height, `${total(minutes.decisions)} decisions and ${total(minutes.rewards)} rewards in the last hour`);
  for (let tick = 0; tick <= ceiling + 1e-9; tick += step) {
    drawing.append(
      svg("line", { class: "grid", x1: left, x2: width - 6, y1: y(tick), y2: y(tick) }),
      svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, fixed(tick, marks.places)),
    );
  }
  for (let minute = 0; minute < decisions.length; minute++) {
    const moment = start + 60 * minute;
    if (moment % (busy ? 900 : 300) === 0)
      drawing.append(svg("text", { x: Math.min(Math.max(x(minute), left + 14), width - 22), y: height - 4, "text-anchor": "middle" }, words.time(moment)));
  }
  const path = (values) => values.map((value, minute) => `${minute ? "L" : "M"}${x(minute).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const cursor = svg("line", { class: "cursor", y1: top, y2: height - bottom, visibility: "hidden" });
  drawing.append(
    svg("path", { class: "area", d: `${path(decisions)}L${x(decisions.length - 1)} ${y(0)}L${left} ${y(0)}Z` }),
    svg("path", { class: "rate decisions", d: path(decisions) }),
    svg("path", { class: "rate rewards", d: path(rewards) }),
    cursor,
  );
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const at = ((event.clientX - box.left) * (width / box.width) - left) / (width - left - 6);
    const minute = Math.min(Math.max(Math.round(at * (decisions.length - 1)), 0), decisions.length - 1);
    cursor.setAttribute("x1", x(minute));
    cursor.setAttribute("x2", x(minute));
    cursor.setAttribute("visibility", "visible");
    read({ time: start + 60 * minute, decisions: minutes.decisions[minute], rewards: minutes.rewards[minute] });
  });
  drawing.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    read(null);
  });
  place.replaceChildren(drawing);
}

// Values over time: one line for each of the three policies, where it is known.
export function over(place, points) {
  if (points.length < 2) return place.replaceChildren();
  const width = Math.max(place.clientWidth, 240), height = 226, left = 52, bottom = 22, top = 8;
  const kinds = ["uniform", "greedy", "policy"].filter((kind) => points.some((point) => point[kind] !== null));
  const all = kinds.flatMap((kind) => points.map((point) => point[kind])).filter((value) => value !== null);
  const pad = (Math.max(...all) - Math.min(...all) || Math.abs(all[0]) || 1) * 0.08;
  const low = Math.min(...all) - pad, high = Math.max(...all) + pad;
  const first = points[0].time, last = points.at(-1).time;
  const x = (time) => left + (last > first ? (time - first) / (last - first) : 0.5) * (width - left - 6);
  const y = (value) => top + ((high - value) / (high - low)) * (height - top - bottom);
  const drawing = canvas(width, height, `Value over time, from ${words.date(first)} to ${words.date(last)}`);
  const marks = ticks(low, high, 4);
  for (const tick of marks.found)
    drawing.append(
      svg("line", { class: "grid", x1: left, x2: width - 6, y1: y(tick), y2: y(tick) }),
      svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, fixed(tick, marks.places)),
    );
  const day = last - first > 86400, named = day ? words.date : words.time;
  drawing.append(
    svg("text", { x: left, y: height - 4 }, named(first)),
    svg("text", { x: width - 6, y: height - 4, "text-anchor": "end" }, named(last)),
  );
  for (const kind of kinds) {
    const known = points.filter((point) => point[kind] !== null);
    const path = known.map((point, at) => `${at ? "L" : "M"}${x(point.time).toFixed(1)} ${y(point[kind]).toFixed(1)}`).join("");
    drawing.append(svg("path", { class: `over ${kind}`, d: path }));
  }
  place.replaceChildren(drawing);
}

// The axis below the strips of all arms: its ends, in words.
export function scale([low, high]) {
  const line = document.createElement("p");
  line.className = "soft small axis";
  line.append(`Strips of rewards go from ${words.number(low)} to ${words.number(high)}, those of shares from 0 to 100%.`);
  return line;
}

// A share as a bar with its interval.
export function share(estimate) {
  const drawing = svg("svg", { viewBox: "0 0 100 12", height: 12, preserveAspectRatio: "none", "aria-hidden": "true" });
  drawing.append(
    svg("rect", { class: "track", x: 0, y: 1, width: 100, height: 10 }),
    svg("rect", { class: "bar", x: 0, y: 1, width: 100 * estimate.value, height: 10 }),
  );
  if (estimate.low !== null)
    drawing.append(svg("line", { class: "whisker", x1: 100 * estimate.low, x2: 100 * estimate.high, y1: 6, y2: 6, "vector-effect": "non-scaling-stroke" }));
  return drawing;
}

// A mean with its interval between the ends of a scale that all rows share.
export function mean(estimate, [low, high]) {
  const x = (value) => (high > low ? (100 * (value - low)) / (high - low) : 50);
  const drawing = svg("svg", { viewBox: "0 0 100 12", height: 12, preserveAspectRatio: "none", "aria-hidden": "true" });
  drawing.append(svg("rect", { class: "track", x: 0, y: 5, width: 100, height: 2 }));
  if (estimate.value === null) return drawing;
  if (estimate.low !== null)
    drawing.append(svg("line", { class: "whisker", x1: x(estimate.low), x2: x(estimate.high), y1: 6, y2: 6, "vector-effect": "non-scaling-stroke" }));
  drawing.append(svg("rect", { class: "dot", x: x(estimate.value) - 0.6, y: 1, width: 1.2, height: 10 }));
  return drawing;
}
