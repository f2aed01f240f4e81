// Makes every decision of a log again, and compares: `node check.mjs model.json log.jsonl`.
//
// A line of the log is { offer, random, arm, probabilities }, and perhaps { model }: the scorer's. Prints one JSON object: how many decisions there were, in
// how many another arm comes out, how many had a tie (another arm leads if the offer is read backwards), and the largest
// difference of a probability. Ends with 1 where an arm differs or a probability does by more than 1e-9,
// with 2 where the log is not one.
import { createReadStream, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Scorer } from "./scorer.mjs";

const backwards = ({ context, arms, features, available }) =>
  features
    ? { features: features.toReversed?.() ?? [...features].reverse(), available: available && [...available].reverse() }
    : { context, arms: Array.isArray(arms) ? [...arms].reverse() : arms && Object.fromEntries(Object.entries(arms).reverse()) };

export async function check(model, log) {
  const scorer = new Scorer(JSON.parse(readFileSync(model, "utf8")));
  const bare = new Scorer({ ...JSON.parse(readFileSync(model, "utf8")), floor: 0 });
  const found = { decisions: 0, arms_that_differ: 0, ties: 0, largest_difference: 0 };
  for await (const line of createInterface({ input: createReadStream(log) })) {
    const { model: by, offer, random, arm, probabilities } = JSON.parse(line);
    const lacks = Object.entries({ offer, random, arm, probabilities }).find(([, value]) => value === undefined);
    const place = `line ${found.decisions + 1} of the log`;
    if (lacks) throw new Error(`${place} must have offer, random, arm and probabilities, got no ${lacks[0]}`);
    if (by !== undefined && by !== scorer.model) throw new Error(`${place} must be of model ${scorer.model}, got ${by}`);
    const made = scorer.decide(offer, random);
    found.decisions += 1;
    if (made.arm !== arm) found.arms_that_differ += 1;
    const last = offer.features ? offer.features.length - 1 : 0;
    const other = bare.decide(backwards(offer), random).arm;
    const led = random[1] < scorer.floor ? bare.decide(offer, random).arm : made.arm;
    if (led !== (offer.features ? last - other : other)) found.ties += 1;
    made.probabilities.forEach((share, place) => {
      const difference = Math.abs(share - probabilities[place]);
      if (!(difference <= found.largest_difference)) found.largest_difference = difference;
    });
  }
  return found;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  try {
    const found = await check(process.argv[2], process.argv[3]);
    console.log(JSON.stringify(found));
    process.exitCode = found.arms_that_differ === 0 && found.largest_difference <= 1e-9 ? 0 : 1;
  } catch (error) {
    console.error(error.message);
    process.exitCode = 2;
  }
}
