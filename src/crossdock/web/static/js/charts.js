// The one chart component: a figure with data-chart, drawn by uPlot. Its height is fixed by the style sheet.
//
// data-chart: {"unit", "kind", "x": [seconds since 1970, or numbers], "series": [{"label", "values", "color"?}]} and optionally:
//   "kind": "lines", "bars" (columns) or "rows" (horizontal bars with their labels and values; the figure gets the height they need)
//   "labels": texts for x      "stacked": bars stand on each other       "span_s": the shortest time axis
//   "utc": times are UTC, else of the browser's zone                     "step_s": time between two x, a day or an hour
//   "gaps": a missing value interrupts the line, and values are dots     "marks", "range", "log": of the value axis
// data-source: an address that returns the same, fetched again on "tick".
//
// In the figure: .plot gets the drawing, each [data-series] the value at the cursor, and [data-at] the label or time at the cursor.
(() => {
  "use strict";
  const HOUR = 3600, DAY = 86400;
  const FONT = "system-ui, sans-serif", TEXT = 11, LINE = 14, LINES = 3, LABEL = 300;
  const WHOLE = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((each) => each * 10 ** power)).flat();
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
    return `${+(size < 1 ? value.toPrecision(2) : value.toFixed(size < 10 ? 2 : 0))}`;
  };
  const span = (value) => {
    if (value >= 86400) return `${+(value / 86400).toFixed(1)} d`;
    if (value >= 3600) return `${+(value / 3600).toFixed(1)} h`;
    if (value >= 60) return `${+(value / 60).toFixed(1)} min`;
    if (value > 0 && value < 0.001) return `${+(value * 1e6).toPrecision(3)} µs`;
    return value >= 1 || value === 0 ? `${+value.toFixed(1)} s` : `${+(value * 1000).toFixed(1)} ms`;
  };
  const percent = (value) => `${+(value * 100).toPrecision(value > 0.9 && value < 1 ? 4 : 3)} %`;
  const texts = { s: span, B: (value) => `${short(value)}B`, share: percent };
  const sum = (values) => values.reduce((whole, each) => whole + (each || 0), 0);
  const sums = (spec) => spec.x.map((_, at) => sum(spec.series.map((each) => each.values[at])));

  // Stacked series are drawn as sums, the largest first: a smaller sum covers its part. A logarithmic axis has no 0.
  const data = (spec) => {
    let lines = spec.series.map((each) => each.values);
    if (spec.stacked) {
      const below = spec.x.map(() => 0);
      lines = lines.map((values) => values.map((value, at) => (below[at] += value || 0))).reverse();
    }
    if (spec.log) lines = lines.map((values) => values.map((value) => value === null ? null : Math.max(value, spec.range[0])));
    return [spec.x, ...lines];
  };
  const time = (spec, at) => {
    if (!spec.utc) return new Date(at * 1000).toLocaleString();
    const text = new Date(at * 1000).toISOString();
    return spec.step_s === DAY ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 16)} UTC`;
  };

  // Lines of a label that are at most this wide. The third line is cut.
  const wrapped = (pen, label, width) => {
    const lines = [""];
    const fits = (text) => pen.measureText(text).width <= width;
    for (const word of label.split(" ")) {
      const line = lines[lines.length - 1];
      if (!line || fits(`${line} ${word}`)) lines[lines.length - 1] = line ? `${line} ${word}` : word;
      else lines.push(word);
      while (lines[lines.length - 1].length > 1 && !fits(lines[lines.length - 1])) {
        const long = lines.pop();
        let end = long.length - 1;
        while (end > 1 && !fits(long.slice(0, end))) end -= 1;
        lines.push(long.slice(0, end), long.slice(end));
      }
    }
    if (lines.length <= LINES) return lines;
    let last = lines.slice(LINES - 1).join(" ");
    while (last && !fits(`${last}…`)) last = last.slice(0, -1);
    return [...lines.slice(0, LINES - 1), `${last}…`];
  };
  // Horizontal bars. uPlot draws the bars; labels and values are measured first, so none is cut off.
  const rows = (spec, plot, text) => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `${TEXT}px ${FONT}`;
    const wide = (texts) => Math.ceil(Math.max(0, ...texts.map((each) => pen.measureText(each).width))) + 8;
    const labels = spec.labels.map((label) => wrapped(pen, label.slice(0, LABEL), plot.clientWidth * 0.42));
    const values = sums(spec).map(text);
    plot.style.height = `${labels.length * (Math.max(...labels.map((lines) => lines.length)) * LINE + 10)}px`;
    const write = ({ ctx, bbox, valToPos }) => {
      const ratio = devicePixelRatio;
      ctx.save();
      ctx.font = `${TEXT * ratio}px ${FONT}`;
      ctx.textBaseline = "middle";
      labels.forEach((lines, at) => {
        const middle = valToPos(at, "x", true);
        ctx.textAlign = "right";
        ctx.fillStyle = colour("muted");
        lines.forEach((line, row) => ctx.fillText(line, bbox.left - 8 * ratio, middle + (row - (lines.length - 1) / 2) * LINE * ratio));
        ctx.textAlign = "left";
        ctx.fillStyle = colour("text");
        ctx.fillText(values[at], valToPos(Math.max(0, sums(spec)[at]), "y", true) + 6 * ratio, middle);
      });
      ctx.restore();
    };
    return { padding: [0, wide(values), 0, wide(labels.flat())], write };
  };

  // The bounds are those of the data: around a single point, uPlot would show years.
  const xRange = (spec) => (chart) => {
    const [low, high] = [chart.data[0][0], chart.data[0][chart.data[0].length - 1]];
    if (spec.labels) return [low - 0.5, high + 0.5];
    const half = (spec.step_s || HOUR) / 2;
    if (spec.step_s && spec.kind === "bars" || low === high && !spec.span_s) return [low - half, high + half];
    return [spec.span_s ? Math.min(low, high - spec.span_s) : low, high];
  };
  const yRange = (spec) => (_, low, high) => spec.range || [Math.min(0, low || 0), high > 0 ? high * (spec.kind === "rows" ? 1 : 1.1) : 1];
  const increments = (spec) => {
    if (spec.labels) return [1, 2, 5, 10, 20, 50, 100, 200, 500];
    const days = [1, 2, 3, 7, 14, 30, 60, 90, 180, 365].map((each) => each * DAY);
    return spec.step_s === DAY ? days : spec.step_s === HOUR ? [1, 2, 3, 6, 12].map((each) => each * HOUR).concat(days) : undefined;
  };
  const axes = (spec, text) => {
    const axis = { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: `${TEXT}px ${FONT}` };
    if (spec.kind === "rows") return [{ show: false }, { show: false }];
    const whole = spec.step_s && spec.series.every((each) => each.values.every(Number.isInteger));
    return [
      { ...axis, grid: { ...axis.grid, show: !spec.stacked }, space: 64, gap: 8, size: (_, texts) => texts && texts.some((each) => String(each).includes("\n")) ? 44 : 28, incrs: increments(spec), values: spec.labels ? (_, at) => at.map((each) => spec.labels[each] ?? "") : [
        [DAY, "{D} {MMM}", null, null, null, null, null, null, 1],
        [HOUR, "{HH}:{mm}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
        [1, "{HH}:{mm}", null, null, null, null, null, null, 1],
      ] },
      { ...axis, size: 56, space: 32, incrs: whole ? WHOLE : undefined, values: (_, at) => at.map(text), ...(spec.marks ? { splits: () => spec.marks, filter: (_, at) => at } : {}) },
    ];
  };
  const options = (figure, spec, plot) => {
    const text = texts[spec.unit] || short;
    const across = spec.kind === "rows" ? rows(spec, plot, text) : null;
    const bars = across ? uPlot.paths.bars({ size: [0.8, 16] }) : spec.kind === "bars" ? uPlot.paths.bars({ size: [0.7, 40] }) : undefined;
    const series = spec.series.map((each, index) => {
      const stroke = colour(`series-${each.color || (index % 4) + 1}`);
      const fill = transparent(stroke, spec.stacked ? 1 : bars ? 0.75 : index ? 0 : 0.12);
      const points = { show: Boolean(spec.gaps) && spec.x.length <= 36, size: 6, fill: stroke };
      return { label: each.label, stroke, width: spec.stacked ? 0 : 1.5, fill: spec.log ? undefined : fill, paths: bars, points, spanGaps: !spec.gaps };
    });
    return {
      width: plot.clientWidth, height: plot.clientHeight, padding: across ? across.padding : [8, spec.labels ? 12 : 24, 0, 0], legend: { show: false },
      cursor: { x: !across, y: false, points: { show: !bars || !spec.stacked, size: 6 } },
      tzDate: spec.utc ? (at) => uPlot.tzDate(new Date(at * 1000), "UTC") : undefined,
      scales: {
        x: { time: !spec.labels, range: xRange(spec), ...(across ? { ori: 1, dir: -1 } : {}) },
        y: { distr: spec.log ? 3 : 1, range: yRange(spec), ...(across ? { ori: 0 } : {}) },
      },
      axes: axes(spec, text),
      series: [{}, ...(spec.stacked ? series.reverse() : series)],
      hooks: { setCursor: [(chart) => tell(figure, text, chart.cursor.idx)], draw: across ? [across.write] : [] },
    };
  };
  // The legend has the values at the cursor. Elsewhere it has the sums of bars, and the newest values of lines.
  const tell = (figure, text, at) => {
    const { spec } = figure;
    const idle = at === null || at === undefined;
    const adds = spec.kind !== "lines";
    figure.querySelectorAll("[data-series]").forEach((element, index) => {
      const { values } = spec.series[index];
      const value = !idle ? values[at] : adds ? sum(values) : values[values.length - 1];
      element.textContent = value === null || value === undefined ? "–" : text(value);
    });
    const place = figure.querySelector("[data-at]");
    const last = spec.x.length - 1;
    if (place) place.textContent = idle && adds ? place.dataset.at : spec.labels ? spec.labels[idle ? last : at] : time(spec, spec.x[idle ? last : at]);
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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  document.addEventListener("tick", () => { update().catch(() => {}); });
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(again, 150); });
})();
