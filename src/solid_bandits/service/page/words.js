// Numbers, intervals and times as people read them; the same rules as the package's own printed numbers.
export const ABSENT = "–";
const typeset = (text) => text.replaceAll("-", "−");
const grouped = (value, places) =>
  typeset(value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places, signDisplay: "negative", roundingMode: "halfEven" }));

// The decimals that show so many figures of a number of this size.
function decimals(size, figures) {
  const rounded = Math.abs(Number(size.toExponential(figures - 1)));
  return rounded === 0 ? 0 : Math.min(Math.max(figures - 1 - Math.floor(Math.log10(rounded)), 0), 8);
}

export function number(value, figures = 3) {
  if (value === null || !Number.isFinite(value)) return ABSENT;
  if (value === 0) return "0";
  if (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e9)
    return typeset(value.toExponential(figures - 1).replace(/([+-])(\d)$/, "$10$2")); // two digits, as elsewhere
  return grouped(value, decimals(value, figures));
}

export const count = (value) => (value === null || value === undefined ? ABSENT : grouped(value, 0));

// A mean to the decimals that two figures of its interval have.
function places(estimate) {
  const half = (estimate.high - estimate.low) / 2;
  return half >= 1e-6 && half < 1e9 ? decimals(half, 2) : null;
}

export function mean(estimate) {
  if (estimate.low === null) return number(estimate.value);
  const shown = places(estimate);
  return shown === null ? number(estimate.value) : grouped(estimate.value, shown);
}

export function interval(estimate) {
  if (estimate.low === null) return "";
  const shown = places(estimate);
  const one = (value) => (shown === null ? number(value) : grouped(value, shown));
  return `[${one(estimate.low)},\u00a0${one(estimate.high)}]`; // on one line
}

// The same as percentages.
export function percent(estimate) {
  const times = (value) => (value === null ? null : 100 * value);
  return { value: times(estimate.value), low: times(estimate.low), high: times(estimate.high) };
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return ABSENT;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export const time = (seconds) =>
  new Date(seconds * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

export const date = (seconds) =>
  new Date(seconds * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
