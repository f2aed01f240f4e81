"use strict";
// What every chart of the page shares. All are redrawn from `state` alone: no chart keeps settings of its own.
const charts = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const state = { time: "linear" };
  const drawers = [];
  // A label with dollars is a label, not mathematics.
  const config = { responsive: true, displayModeBar: false, typesetMath: false };

  const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
  const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
  const decades = (values) => Math.log10(most(values) / least(values));

  // Plotly reads text as a subset of html; a policy's label is plain text.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const short = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);
  const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const faint = (colour) => colour + Math.round(data.band_opacity * 255).toString(16).padStart(2, "0");

  function layout(more) {
    const axis = {
      gridcolor: theme("--line"), linecolor: theme("--soft"), tickcolor: theme("--line"), ticks: "outside",
      zeroline: false,
    };
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: theme("--ink") },
      hoverlabel: { bgcolor: theme("--card"), bordercolor: theme("--line"), font: { color: theme("--ink") } },
      showlegend: false,
      dragmode: matchMedia("(hover: hover)").matches ? "zoom" : false, // a finger that scrolls must not zoom
      ...more,
      xaxis: { ...axis, ...more.xaxis },
      yaxis: { ...axis, ...more.yaxis },
    };
  }

  // Plotly chooses log ticks from the number asked for: these give powers of ten, or 1, 2, 5 over few decades.
  function ticks(type, span) {
    if (type !== "log") return { type, separatethousands: true };
    return { type, nticks: span >= 3 ? Math.ceil(span) : span < 1.3 ? 3 : 4, tickformat: ",~f" };
  }

  function timeAxis(steps) {
    return {
      title: { text: "step t", standoff: 10 }, unifiedhovertitle: { text: "step %{x:,d}" }, exponentformat: "SI",
      spikecolor: theme("--soft"), spikethickness: 1, spikedash: "dot", ...ticks(state.time, decades(steps)),
    };
  }

  // A piece of a policy's line, or of the bound's; there is no text of the results in it.
  function swatch({ colour = "currentColor", dash = "dash" }) {
    const line = `<line class="${dash}" x1="0" y1="4" x2="22" y2="4" stroke="${colour}"/>`;
    return `<svg class="swatch" viewBox="0 0 22 8" aria-hidden="true">${line}</svg>`;
  }

  // A button that hides and shows what is drawn under `key`: `hidden` holds the keys of what is not.
  function addToLegend(legend, hidden, key, policy) {
    const button = document.createElement("button");
    button.innerHTML = swatch(policy);
    button.append(policy.label);
    button.setAttribute("aria-pressed", String(!hidden.has(key)));
    button.addEventListener("click", () => {
      if (!hidden.delete(key)) hidden.add(key);
      button.setAttribute("aria-pressed", String(!hidden.has(key)));
      draw();
    });
    legend.append(button);
    return button;
  }

  function draw() {
    for (const button of document.querySelectorAll("[data-set]")) {
      button.setAttribute("aria-pressed", String(state[button.dataset.set] === button.dataset.value));
    }
    for (const drawer of drawers) drawer();
  }

  for (const button of document.querySelectorAll("[data-set]")) {
    button.addEventListener("click", () => {
      state[button.dataset.set] = button.dataset.value;
      draw();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return {
    addToLegend, config, data, decades, draw, drawers, faint, layout, least, most, plain, short, state, swatch, theme,
    ticks, timeAxis,
  };
})();
