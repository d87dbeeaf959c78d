// Draws each table of a figure with data-chart, and folds the table. Without this script the tables are there as they are.
"use strict";
(() => {
  const HEIGHT = 230;
  const drawn = [];
  const utc = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");
  const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const dayOf = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);
  const told = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

  // Days in seconds, and each column that has a colour: its name, its colour's, its numbers.
  const read = (table) => {
    const rows = [...table.tBodies[0].rows];
    const days = rows.map((row) => Date.parse(`${row.cells[0].textContent}T00:00:00Z`) / 1000);
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

  const plot = (figure, host, { days, columns }) => {
    const how = figure.dataset.chart;
    const series = how === "stacked" ? pile(columns) : columns;
    const axis = { stroke: colourOf("soft"), grid: { stroke: colourOf("line"), width: 1 }, ticks: { show: false } };
    const first = days[0], last = days.at(-1), margin = Math.max(43200, (last - first) * 0.01);
    return new uPlot({
      width: host.clientWidth,
      height: HEIGHT,
      tzDate: utc,
      cursor: { drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: { range: [first - margin, last + margin] }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
      axes: [{ ...axis, space: 70, values: (_, marks) => marks.map((mark, at) => dayOf(mark).slice(at ? 5 : 0)) }, { ...axis, size: 56, values: (_, marks) => marks.map((mark) => told.format(mark)) }],
      series: [
        { label: "day", value: (_, at) => (at == null ? "–" : dayOf(at)) },
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
