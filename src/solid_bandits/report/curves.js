"use strict";
// Mean regret over time: bands, lines, the bound, and in words what the axis leaves out.
charts.curves = (() => {
  const { config, faint, layout, least, most, plain, short, state, theme, ticks, timeAxis } = charts;
  state.regret = "linear";

  const top = (policy) => most(policy.high || policy.mean);

  // The range of the regret axis: as high as the figure's at most, but following what is shown.
  function regretRange(policies, bound, limit) {
    if (state.regret === "log") {
      const means = policies.flatMap((policy) => policy.mean).filter((value) => value > 0);
      return means.length ? [Math.log10(least(means)), Math.log10(1.2 * most(policies.map(top)))] : [0, 1];
    }
    const fitting = policies.filter((policy) => !policy.off_scale);
    const whole = state.regret === "full" || !fitting.length;
    const height = 1.05 * most([0, most(bound), ...(whole ? policies : fitting).map(top)]);
    return [0, (whole ? height : Math.min(height, limit)) || 1];
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

  // Draw `policies` and `bound` ({ step, value } or null) into the element `chart`; `limit` is the height of the linear
  // axis. Gives the note on what that axis leaves out.
  return (chart, policies, bound, limit, more = {}) => {
    const heights = bound ? bound.value : [];
    const range = regretRange(policies, heights, limit);
    const log = state.regret === "log";
    // A label that lists many policies would cover a small chart: there only the nearest line speaks.
    const unified = policies.length <= 8 && chart.clientWidth > 480;
    // On a logarithmic axis a curve begins where it is positive, and a band goes down to below the axis.
    const line = (values) => (log ? values.map((value) => (value > 0 ? value : null)) : values);
    const edge = (values) => (log ? values.map((value) => Math.max(value, 10 ** (range[0] - 1))) : values);
    const said = (name, text) => (unified ? text : `${name}<br>step %{x:,d}: ${text}<extra></extra>`);
    const traces = [];
    for (const { step, low, high, colour } of policies.filter((policy) => policy.low)) {
      const common = { x: step, mode: "lines", line: { width: 0, color: colour, simplify: false }, hoverinfo: "skip" };
      traces.push({ ...common, y: edge(low) }, { ...common, y: edge(high), fill: "tonexty", fillcolor: faint(colour) });
    }
    // The hover label lists lines from the last to the first, and what is drawn last lies on top: the first policy.
    if (bound) {
      traces.push({
        x: bound.step, y: line(heights), name: "v* log t", mode: "lines",
        line: { color: theme("--ink"), width: 1.5, dash: "dash" }, hovertemplate: said("v* log t", "%{y:,.4~r}"),
      });
    }
    for (const { label, step, mean, low, high, colour, dash } of [...policies].reverse()) {
      const name = plain(short(label, 32));
      traces.push({
        x: step, y: line(mean), name, mode: step.length > 1 ? "lines" : "markers",
        line: { color: colour, width: 2.2, dash, simplify: false }, marker: { color: colour },
        customdata: low && low.map((value, index) => [value, high[index]]),
        hovertemplate: said(name, "%{y:,.4~r}" + (low ? "  [%{customdata[0]:,.4~r}, %{customdata[1]:,.4~r}]" : "")),
      });
    }
    const steps = policies.flatMap((policy) => policy.step);
    Plotly.react(chart, traces, layout({
      margin: { l: 30, r: 16, t: 14, b: 56 },
      hovermode: unified ? "x unified" : "closest",
      ...more,
      xaxis: { ...timeAxis(steps.length ? steps : [1, 10]), ...more.xaxis },
      yaxis: {
        title: { text: "mean cumulative regret", standoff: 10 }, range, automargin: true, exponentformat: "none",
        ...ticks(log ? "log" : "linear", range[1] - range[0]), ...more.yaxis,
      },
    }), config);
    return log ? "" : scaleNote(policies, heights, range[1]);
  };
})();
