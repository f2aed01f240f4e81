"use strict";
// The regret over time and the final regret of each run.
(() => {
  const { config, data, decades, faint, layout, least, plain, short, state, ticks } = charts;

  const finals = data.policies.flatMap((policy) => policy.final);
  const positive = least(finals) > 0;
  // Where the runs lie over more than an order of magnitude only the logarithm shows them all.
  state.spread = positive && decades(finals) > 1.3 ? "log" : "linear";
  const hidden = new Set();
  const BOUND = "bound"; // never the key of a policy: those are numbers

  function drawCurves() {
    const policies = data.policies.filter((_, index) => !hidden.has(index));
    const bound = hidden.has(BOUND) ? null : data.bound;
    const note = charts.curves(document.getElementById("curves"), policies, bound, data.top);
    document.getElementById("scale-note").textContent = note;
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

  const legend = document.getElementById("legend");
  data.policies.forEach((policy, index) => charts.addToLegend(legend, hidden, index, policy));
  if (data.bound) charts.addToLegend(legend, hidden, BOUND, data.bound);
  document.querySelector('[data-set="spread"][data-value="log"]').hidden = !positive;
  charts.drawers.push(drawSpread, drawCurves);
  charts.draw();
  // Where the first view leaves nothing out, "full" would be the same view again.
  document.querySelector('[data-value="full"]').hidden = !document.getElementById("scale-note").textContent;
})();
