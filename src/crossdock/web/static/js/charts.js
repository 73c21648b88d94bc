// The one chart component: a figure with data-chart, drawn by uPlot. Its height is fixed by the style sheet.
//
// data-chart: {"unit", "x": [seconds since 1970, or numbers], "labels": [texts for x]?, "series": [{"label", "values"}],
// "kind": "lines" | "bars", "span_s": the shortest time axis}. data-source: an address that returns the same, fetched again on "tick".
(() => {
  "use strict";
  const drawn = new Map();
  const colour = (name) => {
    const probe = document.createElement("span");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const transparent = (text, share) => text.replace(/^rgb\((.*)\)$/, `rgba($1, ${share})`);
  const short = (value) => {
    const size = Math.abs(value);
    if (size >= 1e9) return `${+(value / 1e9).toFixed(1)}G`;
    if (size >= 1e6) return `${+(value / 1e6).toFixed(1)}M`;
    if (size >= 1e3) return `${+(value / 1e3).toFixed(1)}k`;
    return `${+value.toFixed(size < 10 ? 2 : 0)}`;
  };
  const span = (value) => {
    if (value >= 86400) return `${+(value / 86400).toFixed(1)} d`;
    if (value >= 3600) return `${+(value / 3600).toFixed(1)} h`;
    if (value >= 60) return `${+(value / 60).toFixed(1)} min`;
    return value >= 1 || value === 0 ? `${+value.toFixed(1)} s` : `${+(value * 1000).toFixed(1)} ms`;
  };
  const texts = { s: span, B: (value) => `${short(value)}B` };
  const data = (spec) => [spec.x, ...spec.series.map((each) => each.values)];

  const options = (figure, spec, plot) => {
    const text = texts[spec.unit] || short;
    const grid = { stroke: colour("line"), width: 1 };
    const axis = { stroke: colour("muted"), grid, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const legend = figure.querySelectorAll("[data-series]");
    const bars = spec.kind === "bars" ? uPlot.paths.bars({ size: [0.7, 40] }) : undefined;
    return {
      width: plot.clientWidth, height: plot.clientHeight, padding: [8, 12, 0, 0], legend: { show: false },
      cursor: { y: false, points: { size: 6 } },
      scales: { x: { time: !spec.labels, range: (_, low, high) => spec.labels ? [low - 0.5, high + 0.5] : [spec.span_s ? Math.min(low, high - spec.span_s) : low, high] }, y: { range: (_, low, high) => [Math.min(0, low || 0), high > 0 ? high * 1.1 : 1] } },
      axes: [
        { ...axis, space: 64, size: 28, incrs: spec.labels ? [1, 2, 5, 10] : undefined, values: spec.labels ? (_, at) => at.map((each) => spec.labels[each] ?? "") : [
          [86400, "{D} {MMM}", null, null, null, null, null, null, 1],
          [3600, "{HH}:{mm}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
          [1, "{HH}:{mm}", null, null, null, null, null, null, 1],
        ] },
        { ...axis, size: 56, space: 32, values: (_, at) => at.map(text) },
      ],
      series: [{}, ...spec.series.map((each, index) => {
        const stroke = colour(`series-${(index % 4) + 1}`);
        return { label: each.label, stroke, width: 1.5, fill: transparent(stroke, bars ? 0.75 : index ? 0 : 0.12), paths: bars, points: { show: false }, spanGaps: true };
      })],
      hooks: { setCursor: [(chart) => {
        const at = chart.cursor.idx;
        legend.forEach((element, index) => {
          const values = chart.data[index + 1];
          const idle = bars ? values.reduce((sum, each) => sum + (each || 0), 0) : values[values.length - 1];
          const value = at === null || at === undefined ? idle : values[at];
          element.textContent = value === null || value === undefined ? "–" : text(value);
        });
      }] },
    };
  };
  const draw = (figure) => {
    const plot = figure.querySelector(".plot");
    const spec = figure.spec || (figure.spec = JSON.parse(figure.dataset.chart));
    drawn.get(figure)?.destroy();
    drawn.delete(figure);
    if (!spec.x.length || !plot.clientWidth) return;
    plot.replaceChildren();
    const chart = new uPlot(options(figure, spec, plot), data(spec), plot);
    drawn.set(figure, chart);
    chart.setCursor({ left: -10, top: -10 });
  };
  const drawAll = () => {
    for (const figure of drawn.keys()) if (!figure.isConnected) { drawn.get(figure).destroy(); drawn.delete(figure); }
    for (const figure of document.querySelectorAll("figure[data-chart]")) if (!drawn.has(figure)) draw(figure);
  };
  const again = () => { for (const figure of document.querySelectorAll("figure[data-chart]")) draw(figure); };
  const update = async () => {
    const sources = new Map();
    for (const figure of document.querySelectorAll("figure[data-source]")) {
      const { source, part } = figure.dataset;
      if (!sources.has(source)) sources.set(source, fetch(source, { headers: { Accept: "application/json" } }).then((reply) => reply.ok ? reply.json() : null));
      const found = await sources.get(source);
      if (!found || !found[part]) continue;
      figure.spec = found[part];
      const chart = drawn.get(figure);
      if (chart && figure.spec.x.length) { chart.setData(data(figure.spec)); chart.setCursor({ left: -10, top: -10 }); } else { draw(figure); }
    }
  };
  drawAll();
  document.addEventListener("charts", drawAll);
  document.addEventListener("theme", again);
  document.addEventListener("tick", () => { update().catch(() => {}); });
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(again, 150); });
})();
