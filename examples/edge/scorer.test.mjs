// node --test examples/edge/scorer.test.mjs: the rules of the scorer against numbers that can be worked out by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Scorer } from "./scorer.mjs";

const BLOCK = { theta: [1, 0.5], triangle: [[0.5], []], weights: [4, 2], targets: [1.25, 0.5] };
const MODEL = {
  file: "solid-bandits model", version: 1, model: "m", policy: "P", step: 9, floor: 0, tie: 1e-12, dim: 2, joint: true,
  blocks: [BLOCK], features: null,
};
const make = (changes) => new Scorer({ ...MODEL, ...changes });
const FEATURES = [[1, 0], [0, 1], [1, 1]];
// V = Uᵀ D U = [[4, 2], [2, 3]], whose inverse is [[3, -2], [-2, 4]] / 8.
const NORMS = [3 / 8, 4 / 8, 3 / 8].map(Math.sqrt);
const MEANS = [1, 0.5, 1.5];
const RANDOM = { kind: "random width", deviation: 4, degrees: 0, least: 1, temperature: 0.35 };
const NONE = [0, 0, 0];

test("greedy takes the largest mean, the first where several tie", () => {
  const scorer = make({ rule: { kind: "greedy" } });
  assert.equal(scorer.decide({ features: FEATURES }, NONE).arm, 2);
  assert.equal(scorer.decide({ features: [[1, 0], [1, 0]] }, NONE).arm, 0);
  assert.equal(scorer.decide({ features: FEATURES, available: [true, true, false] }, NONE).arm, 0);
});

test("means and norms are those of V", () => {
  FEATURES.forEach((row, place) => {
    const { mean, norm } = make({ rule: { kind: "width", width: 1 } }).measure(BLOCK, row);
    assert.ok(Math.abs(mean - MEANS[place]) < 1e-12);
    assert.ok(Math.abs(norm - NORMS[place]) < 1e-12);
  });
});

test("a width makes the arm that is known least lead", () => {
  const lead = (width) => make({ rule: { kind: "width", width } }).decide({ features: FEATURES.slice(0, 2) }, NONE);
  const crossing = (MEANS[0] - MEANS[1]) / (NORMS[1] - NORMS[0]);
  assert.equal(lead(0.999 * crossing).arm, 0);
  assert.equal(lead(1.001 * crossing).arm, 1);
  assert.deepEqual(lead(1.001 * crossing).probabilities, [0, 1]);
});

test("a random width: the probability is that of the exponential beyond the crossing, and u decides by it", () => {
  const scorer = make({ rule: RANDOM });
  const offer = { features: FEATURES.slice(0, 2) };
  const crossing = (MEANS[0] - MEANS[1]) / (NORMS[1] - NORMS[0]);
  const share = Math.exp(-((crossing / 4) ** 2 - 1) / 0.7);
  const { probabilities } = scorer.decide(offer, NONE);
  assert.ok(Math.abs(probabilities[1] - share) < 1e-10 && share > 0.1);
  assert.equal(scorer.decide(offer, [1 - 1.01 * share, 0, 0]).arm, 0);
  assert.equal(scorer.decide(offer, [1 - 0.99 * share, 0, 0]).arm, 1);
});

test("where σ is estimated, the exponential is Lomax", () => {
  const offer = { features: FEATURES.slice(0, 2) };
  const crossing = (MEANS[0] - MEANS[1]) / (NORMS[1] - NORMS[0]);
  const share = (1 + ((crossing / 4) ** 2 - 1) / 3) ** (-3 / 0.7);
  const scorer = make({ rule: { ...RANDOM, degrees: 3 } });
  assert.ok(Math.abs(scorer.decide(offer, NONE).probabilities[1] / share - 1) < 1e-9);
  assert.equal(scorer.decide(offer, [1 - 0.99 * share, 0, 0]).arm, 1);
});

test("a floor is drawn by the second and the third number", () => {
  const scorer = make({ rule: { kind: "greedy" }, floor: 0.3 });
  const offer = { features: FEATURES, available: [true, false, true] };
  assert.deepEqual(scorer.decide(offer, [0, 0.3, 0]).probabilities.map((one) => one.toFixed(12)), ["0.150000000000", "0.000000000000", "0.850000000000"]);
  assert.equal(scorer.decide(offer, [0, 0.29, 0.49]).arm, 0);
  assert.equal(scorer.decide(offer, [0, 0.3, 0.49]).arm, 2);
});

const SIDES = [
  {
    types: { age: "number", device: "category", tags: "tags", day: "weekday", hour: "hour", seen: "date", on: "boolean" },
    columns: [
      ["", "value"], ["age", "value"], ["age", "missing"], ["device", "=ios"], ["device", "other"], ["tags", "=a"],
      ["tags", "=b"], ["day", "=Sunday"], ["hour", "=23"], ["seen", "value"], ["on", "value"],
    ],
    scales: [[1, 30, 0.1], [9, 20000, 0.5]],
  },
  { types: {}, columns: [["", "value"]], scales: [] },
];
const named = make({
  rule: { kind: "greedy" }, joint: false, dim: 11,
  features: { sides: SIDES, slots: SIDES[0].columns.map((_, place) => [place ? [[0, place]] : [], null]), own: false, arms: ["x", "y"], offered: ["x", "y"] },
  blocks: [{ theta: [1, ...new Array(10).fill(0)] }, { theta: [0, 1, ...new Array(9).fill(0)] }],
});
const columns = (context) => named.sides[0].columns(context);

test("values become columns: numbers to scale, words, what is missing or new, times by their own clock", () => {
  assert.deepEqual(columns({ age: 50, device: "ios", tags: ["b", "a"], on: true }), [1, 2, 0, 1, 0, 1, 1, 0, 0, 0, 1]);
  assert.deepEqual(columns({ device: "web", age: null }), [1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
  assert.deepEqual(columns({ tags: ["new"], on: false }), [1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
  const time = "2026-03-01T23:30:00-02:00";
  const [sunday, late, seen] = columns({ day: time, hour: time, seen: time }).slice(7, 10);
  assert.deepEqual([sunday, late], [1, 1]);
  assert.ok(Math.abs(seen - (Date.parse(time) / 86400000 - 20000) / 2) < 1e-9);
});

test("each arm has its own block; arms on offer may be named", () => {
  assert.equal(named.decide({ context: { age: 45 } }, NONE).arm, "y");
  assert.equal(named.decide({ context: { age: 35 } }, NONE).arm, "x");
  assert.deepEqual(named.decide({ context: {}, arms: ["y"] }, NONE).arms, ["y"]);
});

test("what will not do is an error in words", () => {
  for (const [offer, words] of [
    [{ context: { agee: 1 } }, /agee was not declared/],
    [{ context: { age: "old" } }, /age must be a number, got "old"/],
    [{ context: { age: NaN } }, /age must be a number, got NaN/],
    [{ context: { on: 1 } }, /on must be a boolean, got 1/],
    [{ context: { day: "yesterday" } }, /times must be like .* got "yesterday"/],
    [{ context: {}, arms: ["z"] }, /arms must be on offer, got z/],
    [{ context: {}, arms: [] }, /arms must be on offer, got none/],
  ]) {
    assert.throws(() => named.decide(offer, NONE), words);
  }
  const features = { sides: SIDES, slots: [[[], null]], own: true, arms: [], offered: [] };
  const shop = make({ rule: { kind: "greedy" }, features });
  for (const arms of [["tea"], undefined]) assert.throws(() => shop.decide({ arms }), /arms must be a table of values by name/);
  assert.throws(() => make({ rule: { kind: "greedy" } }).decide({ features: [[1]] }), /rows of 2 numbers/);
  assert.throws(() => make({ rule: { kind: "greedy" } }).decide({ features: [[1, NaN]] }), /rows of 2 numbers/);
  assert.throws(() => make({ version: 2 }), /not a model of version 1/);
});
