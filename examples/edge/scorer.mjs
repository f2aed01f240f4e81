// Decides by a model that `Agent.export` or `Bandit.export` wrote; for Node, browsers, workers at an edge:
//   const { arm, probability, random } = new Scorer(JSON.parse(text)).decide({ context: { age: 34 } });
// An offer is { context, arms } where features have names: `arms` are names, or a table of their own values by name, or
// left out for all. Else it is { features, available }: a matrix, one row an arm, and which may be chosen. `random` is
// three uniform numbers from [0, 1), which decide: a decision that was logged with them can be made again.

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?(Z|[+-]\d\d:\d\d)?)?$/;

// Days since 1970; the weekday and the hour as the caller's clock said them. Without a zone a time is UTC.
function moment(text) {
  const [, date, hour, minute = 0, second = 0, zone = "Z"] = TIME.exec(text) ?? [];
  if (date === undefined) throw new Error(`times must be like '2026-03-01T12:30:00Z', got ${JSON.stringify(text)}`);
  const behind = zone === "Z" ? 0 : Number(zone[0] + 1) * (60 * Number(zone.slice(1, 3)) + Number(zone.slice(4)));
  const seconds = 3600 * Number(hour ?? 0) + 60 * (Number(minute) - behind) + Number(second);
  const weekday = DAYS[new Date(date).getUTCDay()];
  return { days: (Date.parse(date) / 1000 + seconds) / 86400, weekday, hour: hour && String(Number(hour)) };
}

// The names of one side, the context or the arms' own, as columns: [1, ...].
class Side {
  constructor({ types, columns, scales }) {
    Object.assign(this, { types: Object.entries(types), scales, size: columns.length, known: new Set(Object.keys(types)) });
    this.places = new Map(columns.map(([name, says], place) => [`${says}\n${name}`, place]));
  }

  columns(values) {
    const found = new Array(this.size).fill(0);
    for (const name of Object.keys(values)) if (!this.known.has(name)) throw new Error(`${name} was not declared`);
    for (const [name, type] of this.types) {
      const set = (says, value) => (found[this.places.get(`${says}\n${name}`) ?? 0] = value);
      const value = values[name] ?? null;
      if (value === null) {
        set("value", NaN);
        set("missing", 1);
      } else if (type === "number" || type === "boolean") {
        if (typeof value !== type || !(Math.abs(value) <= 1e30)) throw new Error(`${name} must be a ${type}, got ${typeof value === "number" ? value : JSON.stringify(value)}`);
        set("value", Number(value));
      } else if (type === "date") {
        set("value", moment(value).days);
      } else if (type !== null) {
        const words = type === "tags" ? value : [type === "category" ? value : moment(value)[type]];
        for (const word of words) set(this.places.has(`=${word}\n${name}`) ? `=${word}` : "other", 1);
      }
    }
    for (const [place, center, scale] of this.scales) found[place] = (found[place] - center) * scale;
    found[0] = 1; // where all that has no column went
    return found.map((value) => (Number.isNaN(value) ? 0 : value));
  }
}

export class Scorer {
  constructor(model) {
    if (model.file !== "solid-bandits model" || model.version !== 1) throw new Error("not a model of version 1");
    Object.assign(this, model);
    if (model.features) this.sides = model.features.sides.map((side) => new Side(side));
  }

  decide(offer, random = [Math.random(), Math.random(), Math.random()]) {
    const { names, rows, open } = this.sides ? this.named(offer) : this.matrix(offer);
    const arms = rows.map(([block, vector]) => this.measure(this.blocks[block], vector));
    const shares = new Array(arms.length).fill(0);
    const { kind, width } = this.rule;
    let arm = kind === "width" ? this.leader(arms, open, width) : this.leader(arms, open, 0, 0);
    if (kind === "random width") arm = this.draw(arms, open, random[0], shares);
    else shares[arm] = 1;
    if (this.floor > 0) {
      for (const place of open) shares[place] = (1 - this.floor) * shares[place] + this.floor / open.length;
      if (random[1] < this.floor) arm = open[Math.floor(random[2] * open.length)];
    }
    return { arm: names[arm], probability: shares[arm], arms: names, probabilities: shares, random };
  }

  named({ context = {}, arms = null }) {
    const { own, slots, arms: all, offered } = this.features;
    if (own && (!arms || Array.isArray(arms))) throw new Error(`arms must be a table of values by name, got ${JSON.stringify(arms)}`);
    const names = own ? Object.keys(arms ?? {}) : arms ?? offered;
    const wrong = names.find((arm) => all.length > 0 && !offered.includes(arm));
    if (!names.length || wrong !== undefined) throw new Error(`arms must be on offer, got ${wrong ?? "none"}`);
    const shared = this.sides[0].columns(context);
    const rows = names.map((arm) => {
      const sides = [shared, own ? this.sides[1].columns(arms[arm]) : null];
      const product = (term) => term.reduce((value, [side, column]) => value * sides[side][column], 1);
      const vector = slots.map(([term, only]) => (only === null || only === arm ? product(term) : 0));
      return [this.joint ? 0 : all.indexOf(arm), vector];
    });
    return { names, rows, open: [...names.keys()] };
  }

  matrix({ features, available = features.map(() => true) }) {
    const rows = features.map((row) => (this.joint ? [0, row] : [row[0], row.slice(1)]));
    const fits = ([block, row]) => this.blocks[block] && row.length === this.dim && row.every(Number.isFinite);
    const [names, open] = [[...rows.keys()], [...rows.keys()].filter((place) => available[place])];
    if (!rows.every(fits) || !open.length) throw new Error(`features must be available rows of ${this.dim} numbers`);
    return { names, rows, open };
  }

  // φᵀθ and ‖φ‖ under V^-1: with w = U^-T φ they are tᵀw and the root of wᵀ D^-1 w.
  measure({ theta, triangle, weights, targets }, vector) {
    if (!triangle) return { mean: vector.reduce((sum, value, i) => sum + value * theta[i], 0), norm: 0 };
    let [w, mean, square] = [[...vector], 0, 0];
    for (let i = 0; i < w.length; i++) {
      mean += targets[i] * w[i];
      square += (w[i] * w[i]) / weights[i];
      for (let j = i + 1; j < w.length; j++) w[j] -= w[i] * triangle[i][j - i - 1];
    }
    return { mean, norm: Math.sqrt(square) };
  }

  // The first arm whose mean + width · norm is larger than all before it by more than rounding.
  leader(arms, open, width, tie = this.tie) {
    const bound = (place) => arms[place].mean + width * arms[place].norm;
    const slack = (place) => tie * (Math.abs(arms[place].mean) + width * arms[place].norm);
    return open.reduce((best, place) => (bound(place) > bound(best) + slack(place) ? place : best), open[0]);
  }

  // RandUCB: the arm of a width drawn by u; each has its part of the upper envelope of the lines mean + width · norm.
  draw(arms, open, u, shares) {
    const { tie, rule: { deviation, degrees, least, temperature } } = this;
    const exponential = -2 * temperature * Math.log(1 - u);
    const drawn = degrees > 0 ? degrees * Math.expm1(Math.min(exponential / degrees, 200)) : exponential;
    const exceeds = (limit) => {
      const beyond = Math.max((limit / deviation) ** 2 - least, 0);
      const growth = degrees > 0 ? Math.log1p(beyond / degrees) : 0; // 0 where σ was told
      return growth > 200 ? 0 : Math.exp(-(degrees > 0 ? degrees * growth : beyond) / (2 * temperature));
    };
    const isSteeper = (one, other) => arms[one].norm > (1 + tie) * arms[other].norm;
    const crossing = (top, arm) => {
      const [a, b] = [arms[top], arms[arm]];
      if (arm > top) return (a.mean - b.mean + tie * Math.abs(b.mean)) / (b.norm * (1 - tie) - a.norm);
      return (a.mean - b.mean - tie * Math.abs(a.mean)) / (b.norm - a.norm * (1 - tie));
    };
    let [top, mass] = [this.leader(arms, open, deviation * Math.sqrt(least)), 1];
    while (top >= 0) {
      let [next, at] = [-1, Infinity];
      for (const arm of temperature > 0 ? open.filter((other) => isSteeper(other, top)) : []) {
        const here = crossing(top, arm);
        const isParallel = next >= 0 && !isSteeper(arm, next) && !isSteeper(next, arm);
        const isHigher = isParallel && arms[arm].mean > arms[next].mean + tie * Math.abs(arms[arm].mean);
        const isFirst = here < at || (here === at && isSteeper(arm, next));
        if (isParallel ? isHigher : isFirst) [next, at] = [arm, here];
      }
      const left = next < 0 ? 0 : Math.min(exceeds(at), mass);
      shares[top] += mass - left;
      [top, mass] = [next, left];
    }
    const arm = this.leader(arms, open, deviation * Math.sqrt(least + drawn));
    return shares[arm] > 0 ? arm : open.reduce((best, other) => (shares[other] > shares[best] ? other : best), arm);
  }
}
