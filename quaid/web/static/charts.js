// Draws each table of a figure with data-chart, and folds the table. Without this script the tables are there as they are.
"use strict";
(() => {
  const HEIGHT = 230;
  const drawn = [];
  const utc = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");
  const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const DAY_S = 86_400, LABEL_WIDTH = 90;
  const inWords = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
  const short = (options) => new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" });
  const dayAndMonth = short({ day: "numeric", month: "short" }), monthOnly = short({ month: "short" });
  const told = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

  // Days in seconds, and each column that has a colour: its name, its colour's, its numbers.
  const read = (table) => {
    const rows = [...table.tBodies[0].rows];
    const days = rows.map((row) => Date.parse(`${row.querySelector("time").dateTime}T00:00:00Z`) / 1000);
    const columns = [...table.tHead.rows[0].cells].flatMap((head, place) => {
      if (!head.dataset.colour) return [];
      const values = rows.map(({ cells }) => (cells[place].dataset.value === "" ? null : Number(cells[place].dataset.value)));
      return [{ name: head.textContent, colour: head.dataset.colour, values }];
    });
    return { days, columns };
  };

  // From the top of the pile down, so that each lies over those that reach higher.
  const pile = (columns) => {
    let below = columns[0].values.map(() => 0);
    return columns.map((column) => ({ ...column, values: (below = column.values.map((value, at) => below[at] + value)) })).reverse();
  };

  // Ticks at whole days, months or years, as many as have room for a label.
  const UNITS = [[1, 0], [2, 0], [7, 0], [14, 0], [0, 1], [0, 2], [0, 3], [0, 6], [0, 12], [0, 24], [0, 60], [0, 120]];
  const placeTicks = (chart, _, first, last) => {
    const most = Math.max(2, Math.floor(chart.width / LABEL_WIDTH)), start = new Date(first * 1000);
    for (const [days, months] of UNITS) {
      const ticks = [], month = start.getUTCMonth();
      for (let step = 0; ticks.length <= most; step += 1) {
        const at = months
          ? Date.UTC(start.getUTCFullYear(), month - (month % Math.min(months, 12)) + step * months, 1)
          : Date.UTC(start.getUTCFullYear(), month, start.getUTCDate() + step * days);
        if (at / 1000 > last) return ticks;
        if (at / 1000 >= first) ticks.push(at / 1000);
      }
    }
    return [first, last];
  };

  // A label names the month or the year only where it changes.
  const nameTicks = (_, ticks) => {
    const days = ticks.map((tick) => new Date(tick * 1000));
    const isDaily = days.some((day) => day.getUTCDate() !== 1) || days.length === 1;
    return days.map((day, place) => {
      const year = day.getUTCFullYear();
      if (days.every((each) => each.getUTCMonth() === 0 && each.getUTCDate() === 1)) return String(year);
      const isNew = place === 0 || days[place - 1].getUTCFullYear() !== year;
      return `${(isDaily ? dayAndMonth : monthOnly).format(day)}${isNew ? ` ${year}` : ""}`;
    });
  };

  // The place at which a chart begins: a few notes of long ago would squeeze all others. Of totals it is where the first
  // twentieth is reached, if that is late; of other values where the days are close together.
  const skipOutliers = (how, { days, columns }) => {
    if (how === "stacked") {
      const totals = days.map((_, at) => columns.reduce((sum, { values }) => sum + values[at], 0));
      const place = totals.findIndex((total) => total >= totals.at(-1) / 20);
      return days[place] - days[0] > days.at(-1) - days[place] ? place : 0;
    }
    for (let place = Math.min(days.length - 2, Math.ceil(days.length / 10)); place > 0; place -= 1) {
      if (days[place] - days[place - 1] > days.at(-1) - days[place]) return place;
    }
    return 0;
  };

  const plot = (figure, host, { days, columns }) => {
    const how = figure.dataset.chart;
    const series = how === "stacked" ? pile(columns) : columns;
    const axis = { stroke: colourOf("soft"), grid: { stroke: colourOf("line"), width: 1 }, ticks: { show: false } };
    const first = days[0], last = days.at(-1), margin = Math.max(DAY_S / 2, (last - first) * 0.01);
    return new uPlot({
      width: host.clientWidth,
      height: HEIGHT,
      tzDate: utc,
      cursor: { drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: { range: [first - margin, last + margin] }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
      axes: [{ ...axis, splits: placeTicks, values: nameTicks }, { ...axis, size: 56, values: (_, marks) => marks.map((mark) => told.format(mark)) }],
      series: [
        { label: "day", value: (_, at) => (at == null ? "–" : inWords.format(at * 1000)) },
        ...series.map(({ name, colour, values }) => {
          const own = columns.find((column) => column.name === name).values;
          const ink = colourOf(colour);
          return {
            label: name,
            stroke: ink,
            width: how === "bars" ? 0 : 2,
            fill: how === "lines" ? undefined : ink,
            paths: how === "bars" ? uPlot.paths.bars({ size: [0.7, 28], radius: 0.15 }) : undefined,
            points: { show: how === "lines" && values.length <= 40, size: 5, fill: ink },
            spanGaps: true,
            value: (_, __, ___, at) => (at == null || own[at] == null ? "–" : told.format(own[at])),
          };
        }),
      ],
    }, [days, ...series.map(({ values }) => values)], host);
  };

  const draw = (figure) => {
    const figures = figure.querySelector(".figures");
    const data = read(figures.querySelector("table"));
    if (!data.days.length || !data.columns.length) return;
    const skipped = skipOutliers(figure.dataset.chart, data), begin = data.days[0];
    if (skipped) {
      const note = document.createElement("p");
      note.className = "about";
      note.textContent = `The chart begins on ${inWords.format(data.days[skipped] * 1000)}, the numbers on ${inWords.format(begin * 1000)}.`;
      figure.append(note);
      data.days.splice(0, skipped);
      for (const column of data.columns) column.values.splice(0, skipped);
    }
    const host = document.createElement("div");
    host.setAttribute("aria-hidden", "true"); // the table says the same
    const fold = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "The numbers";
    figures.replaceWith(host, fold);
    fold.append(summary, figures);
    drawn.push({ figure, host, data, chart: plot(figure, host, data) });
    new ResizeObserver(([{ contentRect }]) => {
      const { chart } = drawn.find((one) => one.host === host);
      if (Math.round(contentRect.width) !== chart.width) chart.setSize({ width: Math.round(contentRect.width), height: HEIGHT });
    }).observe(host);
  };

  document.querySelectorAll("figure[data-chart]").forEach(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const one of drawn) {
      one.chart.destroy();
      one.chart = plot(one.figure, one.host, one.data);
    }
  });
})();
