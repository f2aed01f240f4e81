"use strict";
// The section "Diagnostics of SOLID": one policy at a time, and its exploration policy at one checkpoint at a time.
(() => {
  const { config, data, faint, layout, least, most, state, theme, ticks, timeAxis } = charts;
  const { policies, targets, context_probs: probs, lower_bound: bound } = data.diagnostics;
  const element = (id) => document.getElementById(`diagnostics-${id}`);
  const known = (values) => values.filter((value) => value !== null);
  const number = (value, digits = 4) => value.toLocaleString("en", { maximumSignificantDigits: digits });
  const title = (text) => ({ text, standoff: 6, font: { size: 13 } });
  let subject = policies[0];

  // A line with its band; points without an interval have no band.
  function curve(step, values, low, high, name, shape = "linear") {
    const { colour } = data.policies[subject.policy];
    const banded = step.map((_, index) => index).filter((index) => low[index] !== null && high[index] !== null);
    const edge = { x: banded.map((index) => step[index]), mode: "lines", hoverinfo: "skip" };
    const line = { color: colour, simplify: false, shape };
    const traces = [];
    if (banded.length > 1) {
      traces.push(
        { ...edge, y: banded.map((index) => low[index]), line: { ...line, width: 0 } },
        { ...edge, y: banded.map((index) => high[index]), line: { ...line, width: 0 }, fill: "tonexty", fillcolor: faint(colour) },
      );
    }
    traces.push({
      x: step, y: values, name, mode: step.length > 1 ? "lines" : "markers", marker: { color: colour },
      line: { width: 2.2, ...line }, hovertemplate: "%{y:,.4~r}",
    });
    return traces;
  }

  const dashed = (step, values, name, shape = "linear") => ({
    x: step, y: values, name, mode: "lines", line: { color: theme("--ink"), width: 1.5, dash: "dash", shape },
    hovertemplate: "%{y:,.4~r}",
  });

  function chart(id, traces, yaxis) {
    const last = Math.max(2, subject.step.at(-1)); // an axis of one step has no width
    const range = state.time === "log" ? [0, Math.log10(last)] : [0, last];
    Plotly.react(element(id), traces, layout({
      margin: { l: 30, r: 16, t: 8, b: 46 }, hovermode: "x unified",
      xaxis: { ...timeAxis(subject.step), title: title("step t"), range },
      yaxis: { automargin: true, exponentformat: "none", separatethousands: true, nticks: 6, ...yaxis },
    }), config);
  }

  function drawMultiplier() {
    const { step, mean, low, high } = subject.multiplier;
    const target = subject.multiplier_target;
    // A band of few runs may leave the axis; the means and λ* never do.
    const height = 1.08 * Math.max(most(mean), most(known(target)), Math.min(most(known(high)), 2 * most(mean)));
    const traces = curve(step, mean, low, high, "λ");
    if (known(target).length) traces.unshift(dashed(subject.step, target, "λ*", "hv"));
    chart("multiplier", traces, { range: [0, height > 0 ? height : 1] });
  }

  // The first rounds know as good as nothing, over many decades: the axis begins at a hundredth of the threshold, or
  // lower where the second half of the checkpoints would not be seen.
  function drawStatistic() {
    const { median, low, high } = subject.statistic;
    const later = median.slice(Math.floor(median.length / 2)).filter((value) => value > 0);
    const bottom = Math.min(least(subject.threshold) / 100, least(later) / 2);
    const top = 1.5 * most([...subject.threshold, ...known(median)]);
    const within = (value) => (value === null ? 10 * top : Math.min(Math.max(value, bottom / 10), 10 * top));
    const shown = median.map((value) => (value === null ? null : Math.max(value, bottom / 10)));
    const traces = [
      dashed(subject.step, subject.threshold, "β"),
      ...curve(subject.step, shown, low.map(within), high.map(within), "statistic"),
    ];
    const range = [Math.log10(bottom), Math.log10(top)];
    chart("statistic", traces, { range, ...ticks("log", range[1] - range[0]) });
  }

  function drawPhases() {
    const { median, low, high } = subject.z;
    const range = [Math.log10(least(low) / 1.5), Math.log10(1.5 * most(high))];
    const levels = [...new Set([...low, ...median, ...high])];
    const marks = levels.length <= 7
      ? { type: "log", tickvals: levels, ticktext: levels.map((z) => number(z, 3)) }
      : ticks("log", range[1] - range[0]);
    chart("z", curve(subject.step, median, low, high, "z", "hv"), { range, ...marks });
  }

  function drawExploring() {
    const { step, mean, low, high } = subject.exploring;
    const lately = {
      x: step, y: subject.exploring_lately, name: "since the checkpoint before", mode: "lines",
      line: { color: data.policies[subject.policy].colour, width: 1 }, opacity: 0.7, hovertemplate: "%{y:.1%}",
    };
    const share = curve(step, mean, low, high, "so far");
    share.at(-1).hovertemplate = "%{y:.1%}";
    chart("exploring", [lately, ...share], { range: [0, 1.03], tickformat: ".0%", nticks: 5 });
  }

  function drawDistance() {
    if (!subject.distance) return;
    const { step, mean, low, high } = subject.distance;
    chart("distance", curve(step, mean, low, high, "distance"), { range: [0, 1.03], nticks: 5 });
  }

  function heatMap(id, omega) {
    const [contexts, arms] = [omega.length, omega[0].length];
    const names = (count, label) => Array.from({ length: count }, (_, index) => label(index));
    const share = (context) => (probs ? ` · ρ ${number(probs[context])}` : "");
    // Few rows are high enough for their numbers, many are low enough for a screen.
    const row = Math.max(6, Math.min(38, 640 / contexts));
    Plotly.react(element(id), [{
      type: "heatmap", z: omega, zmin: 0, zmax: 1, xgap: row > 12 ? 2 : 0, ygap: row > 12 ? 2 : 0,
      colorscale: [[0, theme("--chip")], [1, theme("--accent")]], showscale: false,
      texttemplate: arms <= 10 && row > 16 ? "%{z:.2f}" : "",
      hovertemplate: "context %{y}, arm %{x}: %{z:.3~f}<extra></extra>",
    }], layout({
      height: 44 + Math.round(row * contexts), margin: { l: 10, r: 4, t: 4, b: 40 },
      xaxis: {
        title: title("arm"), showgrid: false, ticks: "", fixedrange: true,
        ...(arms <= 10 ? { dtick: 1 } : { nticks: 10 }),
      },
      yaxis: {
        autorange: "reversed", showgrid: false, ticks: "", automargin: true, fixedrange: true,
        ...(contexts <= 16
          ? { tickvals: names(contexts, (x) => x), ticktext: names(contexts, (x) => `context ${x}${share(x)}`) }
          : { title: title("context"), nticks: 12 }),
      },
    }), config);
  }

  function drawMaps() {
    const { step, z, target, mean } = subject.omega;
    const place = Number(element("checkpoint").value);
    const optimum = target[place] === null ? null : targets[target[place]];
    const words = [`step ${step[place].toLocaleString("en")}`, `median z = ${number(z[place])}`];
    if (optimum && optimum.value !== null) {
      words.push(`least regret per log t with this z: u* = ${number(optimum.value)}`);
      if (bound !== null) words.push(`with any z: v* = ${number(bound)}`);
    }
    element("readout").textContent = words.join(" · ");
    heatMap("omega", mean[place]);
    const omega = optimum && optimum.omega;
    element("target").hidden = !omega;
    element("missing").hidden = Boolean(omega);
    element("missing").textContent = optimum
      ? `There is none: no policy gathers enough information in ${number(z[place])} rounds.`
      : "Not solved for this z.";
    if (omega) heatMap("target", omega);
  }

  function draw() {
    const have = {
      multiplier: known(subject.multiplier_target).length > 0,
      infeasible: subject.multiplier_target.includes(null) && targets.length > 0,
      infinite: subject.statistic.median.includes(null),
      distance: subject.distance !== null,
      targets: targets.length > 0,
    };
    for (const part of document.querySelectorAll("[data-needs]")) part.hidden = !have[part.dataset.needs];
    for (const button of element("pick").children) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.policy) === subject.policy));
    }
    drawMultiplier();
    drawStatistic();
    drawPhases();
    drawExploring();
    drawDistance();
    drawMaps();
  }

  // The slider goes to the end: what SOLID has learnt.
  function look(policy) {
    subject = policy;
    const slider = element("checkpoint");
    slider.max = String(policy.omega.step.length - 1);
    slider.value = slider.max;
    draw();
  }

  for (const policy of policies) {
    const shown = data.policies[policy.policy];
    const button = document.createElement("button");
    button.dataset.policy = String(policy.policy);
    button.innerHTML = charts.swatch(shown);
    button.append(shown.label);
    button.disabled = policies.length === 1;
    button.addEventListener("click", () => look(policy));
    element("pick").append(button);
  }
  element("checkpoint").addEventListener("input", drawMaps);
  charts.drawers.push(draw);
  look(subject);
})();
