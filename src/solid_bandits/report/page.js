"use strict";
// The regret over time and the final regret of each run.
(() => {
  const { config, data, decades, faint, layout, least, most, plain, short, state, theme, ticks, timeAxis } = charts;

  const finals = data.policies.flatMap((policy) => policy.final);
  const positive = least(finals) > 0;
  state.regret = "linear";
  // Where the runs lie over more than an order of magnitude only the logarithm shows them all.
  state.spread = positive && decades(finals) > 1.3 ? "log" : "linear";
  const hidden = new Set();
  const BOUND = "bound"; // never the key of a policy: those are numbers

  const top = (policy) => most(policy.high || policy.mean);

  // The range of the regret axis: as high as the figure's at most, but following what is shown.
  function regretRange(policies, bound) {
    if (state.regret === "log") {
      const means = policies.flatMap((policy) => policy.mean).filter((value) => value > 0);
      return means.length ? [Math.log10(least(means)), Math.log10(1.2 * most(policies.map(top)))] : [0, 1];
    }
    const fitting = policies.filter((policy) => !policy.off_scale);
    const whole = state.regret === "full" || !fitting.length;
    const height = 1.05 * most([0, most(bound), ...(whole ? policies : fitting).map(top)]);
    return [0, (whole ? height : Math.min(height, data.top)) || 1];
  }

  // What the linear axis does not show is said, never left out silently.
  function scaleNote(policies, bound, height) {
    const number = (value) => value.toLocaleString("en", { maximumSignificantDigits: 4 });
    const off = policies.filter((policy) => most(policy.mean) > height);
    const cut = policies.filter((policy) => top(policy) > height && !off.includes(policy));
    const names = off.map((policy) => `${policy.label} (up to ${number(most(policy.mean))})`);
    if (most(bound) > height) names.push(`v* log t (up to ${number(most(bound))})`);
    const notes = [];
    if (names.length) notes.push(`Off this scale: ${names.join(", ")}.`);
    if (cut.length) notes.push(`Band cut by this scale: ${cut.map((policy) => policy.label).join(", ")}.`);
    return notes.length ? `${notes.join(" ")} “full” shows all.` : "";
  }

  function drawCurves() {
    const policies = data.policies.filter((_, index) => !hidden.has(index));
    const bound = data.bound && !hidden.has(BOUND) ? data.bound.value : [];
    const range = regretRange(policies, bound);
    const log = state.regret === "log";
    // On a logarithmic axis a curve begins where it is positive, and a band goes down to below the axis.
    const line = (values) => (log ? values.map((value) => (value > 0 ? value : null)) : values);
    const edge = (values) => (log ? values.map((value) => Math.max(value, 10 ** (range[0] - 1))) : values);
    const traces = [];
    for (const { step, low, high, colour } of policies.filter((policy) => policy.low)) {
      const common = { x: step, mode: "lines", line: { width: 0, color: colour, simplify: false }, hoverinfo: "skip" };
      traces.push({ ...common, y: edge(low) }, { ...common, y: edge(high), fill: "tonexty", fillcolor: faint(colour) });
    }
    // The hover label lists lines from the last to the first, and what is drawn last lies on top: the first policy.
    if (bound.length) {
      traces.push({
        x: data.bound.step, y: line(bound), name: "v* log t", mode: "lines",
        line: { color: theme("--ink"), width: 1.5, dash: "dash" }, hovertemplate: "%{y:,.4~r}",
      });
    }
    for (const { label, step, mean, low, high, colour, dash } of [...policies].reverse()) {
      traces.push({
        x: step, y: line(mean), name: plain(short(label, 32)), mode: step.length > 1 ? "lines" : "markers",
        line: { color: colour, width: 2.2, dash, simplify: false }, marker: { color: colour },
        customdata: low && low.map((value, index) => [value, high[index]]),
        hovertemplate: "%{y:,.4~r}" + (low ? "  [%{customdata[0]:,.4~r}, %{customdata[1]:,.4~r}]" : ""),
      });
    }
    Plotly.react("curves", traces, layout({
      margin: { l: 30, r: 16, t: 14, b: 56 },
      hovermode: "x unified",
      xaxis: timeAxis(policies.flatMap((policy) => policy.step)),
      yaxis: {
        title: { text: "mean cumulative regret", standoff: 10 }, range, automargin: true, exponentformat: "none",
        ...ticks(log ? "log" : "linear", range[1] - range[0]),
      },
    }), config);
    document.getElementById("scale-note").textContent = log ? "" : scaleNote(policies, bound, range[1]);
  }

  function drawSpread() {
    const shown = data.order.filter((index) => !hidden.has(index)).map((index) => data.policies[index]).reverse();
    const chart = document.getElementById("spread");
    const traces = shown.map(({ label, run, final, colour }, place) => ({
      type: "box", orientation: "h", x: final, y: final.map(() => place), name: plain(short(label, 32)),
      boxpoints: "all", jitter: 0.8, pointpos: data.boxes ? -1.7 : 0, width: 0.3, whiskerwidth: 0.5,
      line: { color: colour, width: data.boxes ? 1.5 : 0 }, fillcolor: data.boxes ? faint(colour) : "rgba(0,0,0,0)",
      marker: { color: colour, size: data.boxes ? 4 : 8, opacity: 0.6 },
      text: run.map((number) => `run ${number}`), hoveron: "points", hovertemplate: "%{text}: %{x:,.4~r}",
    }));
    Plotly.react(chart, traces, layout({
      height: 86 + 58 * Math.max(shown.length, 2),
      margin: { l: 10, r: 28, t: 8, b: 58 },
      hovermode: "closest",
      xaxis: {
        title: { text: "final regret of a run", standoff: 10 }, exponentformat: "none",
        rangemode: state.spread === "log" ? "normal" : "tozero", ...ticks(state.spread, decades(finals)),
      },
      yaxis: {
        automargin: true, showgrid: false, ticks: "", range: [-0.8, shown.length - 0.5],
        tickvals: shown.map((_, place) => place - (data.boxes ? 0.15 : 0)),
        ticktext: shown.map((policy) => plain(short(policy.label, chart.clientWidth < 520 ? 14 : 26))),
      },
    }), config);
  }

  function addToLegend(key, label, swatch) {
    const button = document.createElement("button");
    button.innerHTML = swatch; // a drawing of ours, with no text of the results in it
    button.append(label);
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      if (!hidden.delete(key)) hidden.add(key);
      button.setAttribute("aria-pressed", String(!hidden.has(key)));
      charts.draw();
    });
    document.getElementById("legend").append(button);
  }

  data.policies.forEach((policy, index) => addToLegend(index, policy.label, policy.swatch));
  if (data.bound) addToLegend(BOUND, data.bound.label, data.bound.swatch);
  document.querySelector('[data-set="spread"][data-value="log"]').hidden = !positive;
  charts.drawers.push(drawSpread, drawCurves);
  charts.draw();
  // Where the first view leaves nothing out, "full" would be the same view again.
  document.querySelector('[data-value="full"]').hidden = !document.getElementById("scale-note").textContent;
})();
