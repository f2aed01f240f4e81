"use strict";
// The section "Rewards, arms and predictions" of a simulation on a stream.
(() => {
  const { config, data, faint, layout, plain, short, theme, timeAxis } = charts;
  const { policies, arms } = data.stream;
  const element = (id) => document.getElementById(`stream-${id}`);
  const tints = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#7F7F7F", "#8C564B"];
  const named = (index) => plain(short(data.policies[index].label, 32));
  let subject = data.order[0];

  function drawReward() {
    const traces = [];
    policies.forEach(({ step, low, high }, index) => {
      if (!low) return;
      const { colour } = data.policies[index];
      const edge = { x: step, mode: "lines", line: { width: 0, color: colour }, hoverinfo: "skip" };
      traces.push({ ...edge, y: low }, { ...edge, y: high, fill: "tonexty", fillcolor: faint(colour) });
    });
    policies.forEach(({ step, mean }, index) => {
      const { colour, dash } = data.policies[index];
      traces.push({
        x: step, y: mean, name: named(index), mode: step.length > 1 ? "lines" : "markers",
        line: { color: colour, dash, width: 2.2 }, marker: { color: colour }, hovertemplate: "%{y:,.4~r}",
      });
    });
    Plotly.react(element("reward"), traces, layout({
      margin: { l: 30, r: 16, t: 8, b: 46 }, hovermode: "x unified",
      xaxis: timeAxis(policies[0].step),
      yaxis: { automargin: true, exponentformat: "none", nticks: 6 },
    }), config);
  }

  function drawCalibration() {
    const every = policies.flatMap(({ predicted }) => predicted);
    const ends = [charts.least(every), charts.most(every)];
    const traces = [{
      x: ends, y: ends, mode: "lines", hoverinfo: "skip", line: { color: theme("--ink"), width: 1.5, dash: "dash" },
    }];
    policies.forEach(({ predicted, received, half_width: half }, index) => {
      const { colour, dash } = data.policies[index];
      traces.push({
        x: predicted, y: received, name: named(index), mode: "lines+markers", line: { color: colour, dash, width: 1.6 },
        marker: { color: colour, size: 5 }, error_y: { type: "data", array: half, thickness: 1, width: 2 },
        hovertemplate: `${named(index)}<br>predicted %{x:,.4~r}, received %{y:,.4~r}<extra></extra>`,
      });
    });
    Plotly.react(element("calibration"), traces, layout({
      margin: { l: 30, r: 16, t: 8, b: 46 }, hovermode: "closest",
      xaxis: { title: { text: "predicted", standoff: 6 }, nticks: 6 },
      yaxis: { title: { text: "received", standoff: 6 }, automargin: true, nticks: 6 },
    }), config);
  }

  function drawShares() {
    const { share_step: step, shares } = policies[subject];
    for (const [place, button] of [...element("pick").children].entries()) {
      button.setAttribute("aria-pressed", String(place === subject));
    }
    const traces = shares.map((values, arm) => ({
      x: step, y: values, name: plain(short(arms[arm], 24)), stackgroup: "arms", mode: "lines",
      line: { width: 0.5, color: arms[arm] === "others" ? "#BBBBBB" : tints[arm % tints.length] },
      hovertemplate: "%{y:.1%}",
    }));
    Plotly.react(element("shares"), traces, layout({
      margin: { l: 30, r: 16, t: 8, b: 46 }, hovermode: "x unified", showlegend: true,
      xaxis: timeAxis(step),
      yaxis: { automargin: true, tickformat: ".0%", range: [0, 1] },
    }), config);
  }

  const has = { calibration: policies.some(({ predicted }) => predicted.length), shares: arms.length > 0 };
  for (const part of document.querySelectorAll("#stream [data-needs]")) part.hidden = !has[part.dataset.needs];
  data.policies.forEach((policy, index) => {
    const button = document.createElement("button");
    button.append(policy.label);
    button.addEventListener("click", () => {
      subject = index;
      drawShares();
    });
    element("pick").append(button);
  });
  charts.drawers.push(drawReward);
  if (has.calibration) charts.drawers.push(drawCalibration);
  if (has.shares) charts.drawers.push(drawShares);
  charts.draw();
})();
