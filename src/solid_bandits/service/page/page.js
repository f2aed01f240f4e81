// The page of the decision service: asks this host for its models and for the numbers of one, every few seconds.
import * as charts from "./charts.js";
import * as words from "./words.js";

const EVERY = 5000, LONGEST = 60000; // milliseconds between two questions, and at most where there is no answer
const STORED = "solid-bandits key";
const at = (id) => document.getElementById(id);
const state = { key: sessionStorage.getItem(STORED), model: null, stats: null, since: null, wait: EVERY, timer: 0, turn: 0 };

function made(name, text, attributes = {}) {
  const element = document.createElement(name);
  if (text !== undefined) element.append(text);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

class Refused extends Error {}

async function ask(path) {
  const answer = await fetch(path, { headers: { authorization: `Bearer ${state.key}` }, cache: "no-store" });
  const content = await answer.json().catch(() => ({}));
  if (answer.status === 401 || answer.status === 403) throw new Refused(content.error ?? "This key is not accepted.");
  if (!answer.ok) throw new Error(content.error ?? `the service answered ${answer.status}`);
  return content;
}

// One look: models, then the numbers of the one that is chosen; what arrives after a newer look is dropped.
async function look() {
  clearTimeout(state.timer);
  const turn = ++state.turn;
  try {
    const { models } = await ask("v1/models");
    if (turn !== state.turn) return;
    const wanted = location.hash.slice(1); // names of models have no letters that are escaped
    state.model = models.find(({ name }) => name === wanted)?.name ?? models[0]?.name ?? null;
    const stats = state.model === null ? null : await ask(`v1/models/${encodeURIComponent(state.model)}/stats`);
    if (turn !== state.turn) return;
    state.stats = stats;
    state.since = Date.now();
    state.wait = EVERY;
    show(models);
  } catch (error) {
    if (turn !== state.turn) return;
    if (error instanceof Refused) return forget(error.message);
    state.wait = Math.min(2 * state.wait, LONGEST);
    const stale = state.since ? ` Numbers are of ${words.time(state.since / 1000)}.` : "";
    say(`No answer: ${error.message}.${stale} Next try in ${words.duration(state.wait / 1000)}.`);
  }
  if (!document.hidden) state.timer = setTimeout(look, state.wait);
}

function say(text) {
  if (at("status").textContent !== text) at("status").textContent = text;
}

function forget(reason = "") {
  clearTimeout(state.timer);
  state.turn++;
  sessionStorage.removeItem(STORED);
  Object.assign(state, { key: null, stats: null, since: null, wait: EVERY });
  for (const id of ["forget", "models", "model", "empty"]) at(id).hidden = true;
  at("title").textContent = "Decision service";
  at("entry").hidden = false;
  at("refused").textContent = reason;
  say("");
  at("key").focus();
}

function open() {
  at("entry").hidden = true;
  at("forget").hidden = false;
  say("Loading …");
  look();
}

function show(models) {
  say(`Up to date, asked every ${words.duration(EVERY / 1000)}`);
  const several = models.length > 1;
  at("models").hidden = !several;
  if (several) {
    const focused = document.activeElement?.dataset?.model;
    at("models").replaceChildren(...models.map(({ name }) => {
      const button = made("button", name, { type: "button", "data-model": name, "aria-current": String(name === state.model) });
      button.addEventListener("click", () => { location.hash = encodeURIComponent(name); });
      return button;
    }));
    if (focused) [...at("models").children].find((one) => one.dataset.model === focused)?.focus();
  }
  at("model").hidden = state.stats === null;
  at("empty").hidden = state.stats !== null;
  at("title").textContent = state.model ?? "Decision service";
  document.title = state.model === null ? "Decision service" : `${state.model} – decision service`;
  if (state.stats === null) return at("empty").replaceChildren("There is no model yet. An admin makes one: ", made("code", 'client.create("news", dim=3)'), ".");
  draw();
}

function draw() {
  const stats = state.stats;
  if (stats === null) return;
  tiles(stats);
  value(stats);
  rates(stats);
  over(stats);
  arms(stats);
  settings(stats);
}

function tiles(stats) {
  // Over the last five minutes, or since the first of them with a decision.
  const { decisions, elapsed } = stats.minutes;
  const lately = decisions.slice(-5), quiet = Math.max(lately.findIndex((many) => many > 0), 0);
  const span = lately.length - 1 - quiet + Math.max(elapsed, 1) / 60;
  const recent = (values) => values.slice(-5).slice(quiet).reduce((a, b) => a + b, 0) / span;
  const rows = [
    ["Decisions", words.count(stats.decisions), several(stats)],
    ["Rewards", words.count(stats.rewards), stats.defaulted ? `and ${words.count(stats.defaulted)} by default` : ""],
    ["Open decisions", words.count(stats.open), stats.expired ? `${words.count(stats.expired)} expired without a reward` : "wait for their rewards"],
    ["Decisions per minute", words.number(recent(stats.minutes.decisions)), "over five minutes"],
    ["Rewards per minute", words.number(recent(stats.minutes.rewards)), "over five minutes"],
    ["Last snapshot", stats.snapshot_age === null ? "none yet" : words.duration(stats.snapshot_age), stats.snapshot_age === null ? "" : "ago"],
  ];
  at("tiles").replaceChildren(...rows.map(([term, number, more]) => {
    const tile = made("div");
    tile.append(made("dt", term), made("dd", number));
    if (more) tile.append(made("dd", more, { class: "soft" }));
    return tile;
  }));
}

const several = (stats) => (stats.arms.length ? `among ${words.count(stats.arms.length + stats.other_arms.arms)} arms` : "");

// What a difference with its interval says, in words.
function compared(subject, other, estimate) {
  if (estimate.value === null) return null;
  if (estimate.low === null) return [`It is too early to compare ${subject.toLowerCase()} with ${other}.`];
  const turned = { value: -estimate.value, low: -estimate.high, high: -estimate.low };
  const strong = (one) => [made("strong", words.mean(one)), ` ${words.interval(one)}.`];
  if (estimate.low > 0) return [`${subject} is ahead of ${other} by `, ...strong(estimate)];
  if (estimate.high < 0) return [`${subject} is behind ${other} by `, ...strong(turned)];
  return [`${subject} and ${other} cannot be told apart yet: the difference is `, ...strong(estimate)];
}

function value(stats) {
  const { values } = stats;
  const parts = [compared("This policy", "uniform choices", values.over_uniform), compared("It", "Greedy", values.over_greedy)].filter(Boolean);
  const verdict = at("verdict");
  if (values.rows === 0) verdict.replaceChildren("No rewards have come yet.");
  else if (!parts.length) verdict.replaceChildren("What other policies would have earned is not known.");
  else verdict.replaceChildren(...parts.flatMap((part, place) => (place ? [" ", ...part] : part)));
  charts.estimates(at("values"), values.rows === 0 ? [] : [
    { name: "This policy", kind: "policy", estimate: values.policy },
    { name: "Uniform", kind: "uniform", estimate: values.uniform },
    { name: "Greedy", kind: "greedy", estimate: values.greedy },
  ]);
  const basis = values.rows === 0 ? [] : [
    `From ${words.count(values.rows)} decisions with their rewards, off-policy; ${100 * stats.confidence}% intervals that hold at all times at once.`,
  ];
  at("value-note").replaceChildren([...basis, ...stats.notes].join(" "));
}

function rates(stats) {
  charts.rates(at("rates"), stats.minutes, (minute) => {
    at("reading").textContent = minute === null ? "" : `${words.time(minute.time)}: ${words.count(minute.decisions)}, ${words.count(minute.rewards)}`;
  });
  if (!at("rates-table").parentElement.open) return;
  const { last, decisions, rewards } = stats.minutes;
  const rows = decisions.map((many, place) => [words.time(last - 60 * (decisions.length - 1 - place)), words.count(many), words.count(rewards[place])]);
  at("rates-table").replaceChildren(table(["Minute", "Decisions", "Rewards"], rows.reverse()));
}

function over(stats) {
  const points = stats.over_time;
  charts.over(at("over"), points);
  at("over-note").textContent = points.length < 2
    ? "Too few rewards yet."
    : `Each point is the mean of about ${words.count(points.at(-1).rows)} decisions with their rewards; what uniform and Greedy choices would have earned in them is estimated, without an interval here.`;
}

// The times that shares may be counted from; the choice stays as long as its time is there.
function since(stats) {
  const select = at("since"), chosen = select.value;
  const options = stats.since.map((time, place) => made("option", place ? words.date(time) : "the beginning", { value: place ? String(time) : "" }));
  select.replaceChildren(...options);
  select.value = [...select.options].some(({ value }) => value === chosen) ? chosen : "";
  return Math.max(select.selectedIndex, 0);
}

function table(heads, rows) {
  const whole = made("table"), head = made("tr"), body = made("tbody");
  head.append(...heads.map((text) => made("th", text, { scope: "col" })));
  const top = made("thead");
  top.append(head);
  for (const [first, ...cells] of rows) {
    const row = made("tr");
    row.append(made("th", first, { scope: "row" }), ...cells.map((cell, place) => (cell instanceof Element ? cell : made("td", cell, { "data-label": heads[place + 1] }))));
    body.append(row);
  }
  whole.append(top, body);
  return whole;
}

function arms(stats) {
  const known = stats.arms.flatMap(({ adjusted }) => [adjusted.low ?? adjusted.value, adjusted.high ?? adjusted.value]).filter((one) => one !== null);
  const scale = [Math.min(...known), Math.max(...known)], from = since(stats);
  const part = (share, later) => (from ? { value: later[from], low: null, high: null } : share);
  const numbers = (label, estimate, unit = "") => {
    const cell = made("td", undefined, { "data-label": label }), both = made("span");
    both.append(estimate.value === null ? words.ABSENT : words.mean(estimate) + unit);
    if (estimate.low !== null) both.append(" ", made("span", words.interval(estimate), { class: "soft" }));
    cell.append(both);
    return cell;
  };
  const drawn = (drawing) => made("td", drawing, { class: "drawn" });
  const rows = stats.arms.map(({ arm, decisions, share, rewards, mean, adjusted, shares_since: later }) => [
    arm,
    words.count(decisions),
    numbers("Share", words.percent(part(share, later)), "%"),
    drawn(charts.share(part(share, later))),
    words.count(rewards),
    numbers("Earns if offered to all", adjusted),
    drawn(charts.mean(adjusted, scale)),
    words.number(mean.value),
  ]);
  const heads = ["Arm", "Decisions", "Share", "", "Rewards", "Earns if offered to all", "", "Mean of its own"];
  const axis = rows.length ? [charts.scale(scale)] : [];
  at("arms").replaceChildren(rows.length ? table(heads, rows) : made("p", "No decisions have been asked for yet.", { class: "soft" }), ...axis);
  const { arms: more, decisions } = stats.other_arms;
  at("others").textContent = more ? `And others, with ${words.count(decisions)} decisions.` : "";
}

function settings(stats) {
  const rows = [
    ["Policy", stats.policy], ["Features of an arm", stats.dim ?? Object.keys({ ...stats.context, ...stats.arm_features }).join(", ")], ["Floor", stats.floor], ["Half-life", stats.half_life],
    ["Wait for a reward", stats.wait === null || stats.wait === undefined ? null : words.duration(stats.wait)], ["Default reward", stats.default_reward],
    ["Created", stats.created ? words.date(stats.created) : null], ["Events in the log", stats.last_sequence === undefined ? null : words.count(stats.last_sequence)],
    ["Answered by", stats.leader === false ? "a node that follows" : "the node that leads it"],
  ];
  at("settings").replaceChildren(...rows.map(([term, text]) => {
    const fact = made("div");
    fact.append(made("dt", term), made("dd", text === null || text === undefined ? words.ABSENT : String(text)));
    return fact;
  }));
}

at("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  state.key = at("key").value.trim();
  at("key").value = "";
  at("refused").textContent = "";
  sessionStorage.setItem(STORED, state.key);
  open();
});
at("forget").addEventListener("click", () => forget());
at("since").addEventListener("change", draw);
at("rates-table").parentElement.addEventListener("toggle", draw);
addEventListener("hashchange", () => { if (state.key) look(); });
document.addEventListener("visibilitychange", () => { if (state.key && !document.hidden) look(); });
new ResizeObserver(draw).observe(at("model"));

if (state.key) open();
else forget();
