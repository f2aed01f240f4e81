"use strict";
// All claims, or one experiment: the address after "#" says which. Only the charts of what is shown exist.
(() => {
  const { config, data, layout, least, most, plain, short, state, theme, ticks } = charts;
  const root = document.documentElement;
  const articles = [...document.querySelectorAll("article")];
  // Other readings than that of the figures are there to be asked for.
  const hidden = data.experiments.map(({ policies }) => new Set(policies.flatMap((one, index) => (one.hidden ? [index] : []))));
  const BOUND = "bound"; // never the key of a policy: those are numbers
  let current = null; // a place in data.experiments; null while the claims are shown

  state.measure = "regret";
  const measures = {
    regret: { title: "final regret", number: figures },
    difference: {
      title: "difference of final regret", number: (value, half) => (value > 0 ? "+" : "") + figures(value, half),
    },
    slope: { title: "slope per unit of log t", number: figures },
    exploring: {
      title: "share of rounds", axis: { tickformat: "~%" },
      number: (value, half) => `${figures(100 * value, 100 * half)}%`,
    },
    time: { title: "CPU time per step", axis: { ticksuffix: "s", tickformat: ".2~s" }, number: duration },
  };

  // A number with the decimals that two figures of its interval's half-width ask for, or four figures of its own.
  function figures(value, half = 0, digits = 4) {
    const decimals = half > 0 ? Math.min(Math.max(1 - Math.floor(Math.log10(half.toPrecision(2))), 0), 8) : null;
    const format = decimals === null
      ? { maximumSignificantDigits: digits }
      : { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
    return value.toLocaleString("en", format).replace("-", "−");
  }

  function duration(seconds) {
    const [unit, size] = seconds < 1e-3 ? ["µs", 1e-6] : seconds < 1 ? ["ms", 1e-3] : ["s", 1];
    return `${figures(seconds / size, 0, 3)} ${unit}`;
  }

  // Curves share the steps of their part and the look of their policy: assembled once, here.
  for (const experiment of data.experiments) {
    for (const part of experiment.parts) {
      for (const curve of part.policies) Object.assign(curve, experiment.policies[curve.policy], { step: part.step });
    }
  }

  function drawCurves(chart, part, without) {
    const policies = part.policies.filter(({ policy }) => !without.has(policy));
    const bound = part.bound && !without.has(BOUND) ? { step: part.step, value: part.bound } : null;
    const title = (text) => ({ text, standoff: 8, font: { size: 12 } });
    chart.parentElement.querySelector("p.scale").textContent = charts.curves(chart, policies, bound, part.top, {
      margin: { l: 10, r: 12, t: 10, b: 46 },
      xaxis: { title: title("step t"), ...(state.time === "log" ? {} : { nticks: chart.clientWidth < 480 ? 5 : 8 }) },
      yaxis: { title: undefined, ...(state.regret === "log" ? {} : { nticks: 6 }) },
    });
  }

  // A label in at most two lines, broken at a space.
  function lines(label, length) {
    if (label.length <= length) return plain(label);
    const space = label.lastIndexOf(" ", length);
    if (space < length / 3) return plain(short(label, length));
    return `${plain(label.slice(0, space))}<br>${plain(short(label.slice(space + 1), length))}`;
  }

  // Bars with intervals in order of final regret, the best on top; on a logarithmic axis, where the length of a bar
  // means nothing, dots.
  function drawBars(chart, experiment, part, without) {
    const { top, bound, values } = part.measures[state.measure];
    const { title, number, axis } = measures[state.measure];
    const order = part.order.filter((policy) => !without.has(policy) && values[policy] && values[policy][0] !== null);
    const rows = order.reverse().map((policy) => {
      const [mean, low, high] = values[policy];
      const half = low === null ? 0 : (high - low) / 2;
      return { ...experiment.policies[policy], mean, low: low ?? mean, high: high ?? mean, half };
    });
    const line = bound !== null && !without.has(BOUND) ? [bound] : [];
    const means = [...rows.map(({ mean }) => mean), ...line];
    const log = state.regret === "log" && rows.length > 0 && least(means) > 0;
    const ends = [...rows.map(({ high }) => high), ...line];
    const starts = rows.map(({ low }) => low);
    const limit = state.regret === "linear" && top !== null ? top : Infinity;
    const wide = chart.clientWidth > 520;
    const room = wide ? 0.16 : 0.26; // for the number beside a bar, as a share of the axis
    let range;
    if (log) {
      const [low, high] = [Math.log10(least(means)), Math.log10(most([...means, ...ends]))];
      const span = Math.max(high - low, 0.3);
      range = [low - 0.08 * span, high + room * span];
    } else {
      const [low, high] = [Math.max(least([0, ...starts]), -limit), Math.min(most([0, ...ends]), limit)];
      range = [low * 1.05, high + room * (high - low || 1)];
    }
    const outer = log ? 10 ** range[1] : range[1];
    const row = experiment.parts.length === 1 && rows.length < 9 ? 44 : 30; // beside the curves there is room
    const place = rows.map((_, index) => index);
    const error = {
      type: "data", symmetric: false, color: theme("--ink"), thickness: 1.4, width: 3,
      visible: rows.some(({ half }) => half > 0),
      array: rows.map(({ mean, high }) => high - mean),
      arrayminus: rows.map(({ mean, low }) => mean - (log ? Math.max(low, 10 ** (range[0] - 1)) : low)),
    };
    const colours = rows.map(({ colour }) => colour);
    const common = {
      x: rows.map(({ mean }) => mean), y: place, error_x: error,
      text: rows.map(({ label, mean, low, high, half }) => {
        const interval = half ? ` [${number(low, half)}, ${number(high, half)}]` : "";
        return `${plain(short(label, 48))}<br>${number(mean, half)}${interval}`;
      }),
      textposition: log ? undefined : "none", hovertemplate: "%{text}<extra></extra>",
    };
    const traces = [log
      ? { ...common, mode: "markers", marker: { color: colours, size: 9 } }
      : { ...common, type: "bar", orientation: "h", width: 0.62, marker: { color: colours, opacity: 0.8 } }];
    if (line.length) {
      traces.push({
        x: [bound, bound], y: [-0.6, rows.length - 0.4], mode: "lines", hoverinfo: "skip",
        line: { color: theme("--ink"), width: 1.4, dash: "dash" },
      });
    }
    // A bar that runs off the axis says how far, at its end.
    const annotations = rows.map(({ mean, high, half }, index) => {
      const off = mean > outer;
      const at = off ? outer : Math.min(Math.max(high, log ? high : 0), outer);
      return {
        x: log ? Math.log10(at) : at, y: index, text: number(mean, half) + (off ? " ▸" : ""), showarrow: false,
        xanchor: off || at > 0.9 * outer ? "right" : "left", xshift: off ? 0 : 5,
        font: { size: 12, color: theme("--ink") }, bgcolor: theme("--card"), borderpad: 1, // readable over the bound and over a bar
      };
    });
    Plotly.react(chart, traces, layout({
      height: 62 + row * Math.max(rows.length, 2), margin: { l: 10, r: 10, t: 6, b: 44 }, hovermode: "closest",
      annotations,
      xaxis: {
        title: { text: title, standoff: 8, font: { size: 12 } }, range, exponentformat: "none", zeroline: true,
        zerolinecolor: theme("--soft"), nticks: wide ? 7 : 4, ...ticks(log ? "log" : "linear", range[1] - range[0]),
        ...axis,
        ...(log && range[1] - range[0] > 1.5 ? { dtick: 1 } : {}),
      },
      yaxis: {
        automargin: true, showgrid: false, ticks: "", ticklabelstandoff: 4, tickvals: place,
        range: [-0.6, Math.max(rows.length, 2) - 0.4], tickfont: { size: 12 }, ticktext: rows.map(({ label }) => lines(label, wide ? 24 : 17)),
      },
    }), config);
  }

  function draw() {
    if (current === null) return;
    const [experiment, article, without] = [data.experiments[current], articles[current], hidden[current]];
    for (const note of article.querySelectorAll("[data-measure]")) note.hidden = note.dataset.measure !== state.measure;
    // Plotly has a class "bars" of its own.
    const [curves, bars] = [".chart.curves", ".chart.bars"].map((kind) => article.querySelectorAll(kind));
    experiment.parts.forEach((part, place) => {
      drawCurves(curves[place], part, without);
      drawBars(bars[place], experiment, part, without);
    });
  }

  // The buttons of an experiment's policies, made when it is first shown.
  function fillLegend(place) {
    const legend = articles[place].querySelector("div.legend");
    if (legend.children.length) return;
    const { policies, parts } = data.experiments[place];
    const keys = policies.map((_, index) => index);
    const add = (key, what) => charts.addToLegend(legend, hidden[place], key, what);
    const buttons = policies.map((policy, index) => add(index, policy));
    if (parts.some((part) => part.bound)) {
      keys.push(BOUND);
      buttons.push(add(BOUND, data.bound));
    }
    if (keys.length < 4) return;
    for (const [word, shown] of [["all", true], ["none", false]]) {
      const button = document.createElement("button");
      button.className = "all";
      button.textContent = word;
      button.addEventListener("click", () => {
        keys.forEach((key) => (shown ? hidden[place].delete(key) : hidden[place].add(key)));
        buttons.forEach((other) => other.setAttribute("aria-pressed", String(shown)));
        charts.draw();
      });
      legend.append(button);
    }
  }

  // Whether some part of the experiment has this measure; what none has is not offered.
  function measured(place, measure) {
    return data.experiments[place].parts.some((part) => Object.keys(part.measures[measure].values).length);
  }

  function wanted() {
    try {
      const name = decodeURIComponent(location.hash.slice(1));
      const place = data.experiments.findIndex((experiment) => experiment.name === name);
      return place < 0 ? null : place;
    } catch {
      return null; // not an address of ours
    }
  }

  function show(place) {
    if (current !== null) for (const chart of articles[current].querySelectorAll(".chart")) Plotly.purge(chart);
    current = place;
    root.dataset.view = place === null ? "claims" : "experiment";
    articles.forEach((article, index) => article.classList.toggle("current", index === place));
    const title = place === null ? "experiments and claims" : data.experiments[place].title;
    document.title = `SOLID: ${title}`;
    for (const link of document.querySelectorAll("nav li a")) {
      const same = place === null ? link.getAttribute("href") === "#" : link.dataset.place === String(place);
      if (same) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.getElementById("choose").selectedIndex = place === null ? 0 : place + 1;
    if (place !== null) {
      fillLegend(place);
      if (!measured(place, state.measure)) state.measure = "regret"; // chosen where there was more to choose from
    }
    charts.draw();
  }

  // A view that was asked for begins at its top, and a screen reader reads its title.
  function turn() {
    show(wanted());
    scrollTo(0, 0);
    document.getElementById(current === null ? "top" : `title-${current}`).focus({ preventScroll: true });
  }

  function filter(answer) {
    root.dataset.filter = answer;
    let shown = 0;
    const claims = document.querySelectorAll("tr.claim");
    for (const claim of claims) shown += !answer || claim.dataset.answer === answer ? 1 : 0;
    for (const button of document.querySelectorAll("button[data-filter]")) {
      button.setAttribute("aria-pressed", String(button.dataset.filter === answer));
    }
    const words = `${shown} of ${claims.length} claims: those ${answer}.`;
    document.getElementById("filtered").textContent = answer ? words : "";
  }

  for (const button of document.querySelectorAll("button[data-filter]")) {
    button.addEventListener("click", () => filter(button.dataset.filter));
  }
  document.querySelectorAll("nav li a").forEach((link, index) => {
    if (index) link.dataset.place = String(index - 1);
  });
  document.getElementById("choose").addEventListener("change", (event) => { location.hash = event.target.value; });
  addEventListener("hashchange", turn);
  for (const button of document.querySelectorAll('[data-set="measure"]')) {
    button.hidden = !measured(Number(button.closest("article").dataset.place), button.dataset.value);
  }
  charts.drawers.push(draw);
  filter("");
  show(wanted());
})();
