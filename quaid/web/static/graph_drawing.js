// Draws nodes and edges on a canvas: colours of the page, names that never cover each other. It knows no address.
"use strict";
delete document.createElement;  // without_styles.js

const GraphDrawing = (() => {
  const FONT = 12, ROW = 16, MAX_NAMES = 60, MAX_SHOWN_NAME = 40, MAX_ARROWS = 600, MAX_NAMED_LINKS = 80, MIN_DOT = 2.2;
  const TYPES = ["person", "place", "organization", "project", "event", "pet", "concept", "thing", "other"];
  const LAYOUT_MS = 600;  // of the first picture; the rest is arranged while one looks on, or not at all
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)");

  const shorten = (text) => (text.length > MAX_SHOWN_NAME ? `${text.slice(0, MAX_SHOWN_NAME - 1)}…` : text);
  const radius = (node, k) => Math.max(3 + Math.min(9, Math.sqrt(node.facts)), MIN_DOT / k);

  // Edges between the same two nodes are one line.
  const bundle = (nodes, edges) => {
    const links = new Map();
    for (const edge of edges) {
      const key = edge.from < edge.to ? `${edge.from} ${edge.to}` : `${edge.to} ${edge.from}`;
      if (!links.has(key)) links.set(key, { source: nodes[edge.from], target: nodes[edge.to], edges: [] });
      links.get(key).edges.push({ ...edge, from: nodes[edge.from], to: nodes[edge.to] });
    }
    for (const link of links.values()) {
      link.over = link.edges.every(({ over }) => over);
      link.name = [...new Set(link.edges.map(({ relation }) => relation))].slice(0, 2).map(shorten).join(", ");
      if (link.source === link.target) link.curvature = 0.6;
    }
    return [...links.values()];
  };

  // Places for texts, of which none covers another; those that come first are preferred.
  class Places {
    rows = new Map();
    take(x, y, width) {
      const row = Math.floor(y / ROW), end = x + width;
      for (const near of [row - 1, row, row + 1]) {
        for (const taken of this.rows.get(near) ?? []) {
          if (x < taken.end && end > taken.x && Math.abs(y - taken.y) < ROW) return false;
        }
      }
      if (!this.rows.has(row)) this.rows.set(row, []);
      this.rows.get(row).push({ x, end, y });
      return true;
    }
  }

  const make = (box, { onNode, onLink }) => {
    let data = { nodes: [], links: [] }, focus, hovered, beside = new Set(), colours, isMoved = false, isFitted = true;
    const tip = (lines) => {
      const made = document.createElement("div");
      for (const [name, text] of lines) {
        const line = document.createElement("p");
        line.className = name;
        line.textContent = text;
        made.append(line);
      }
      return made;
    };

    const readColours = () => {
      const style = getComputedStyle(box), colour = (name) => style.getPropertyValue(`--${name}`).trim();
      colours = Object.fromEntries([...TYPES, "ink", "soft", "line", "card", "accent"].map((name) => [name, colour(name)]));
      colours.font = `${FONT}px ${style.fontFamily}`;
    };
    readColours();

    const isFaint = (node) => hovered && !beside.has(node);
    const touches = (link, node) => node && (link.source === node || link.target === node);
    const isNear = (link) => touches(link, hovered ?? focus);
    // Of many lines each is fainter; colours are written #rrggbb.
    const isDense = () => data.links.length > MAX_ARROWS;
    const colourOf = (link) => (isNear(link) ? colours.accent : link.over ? colours.line : colours.soft + (isDense() ? "48" : ""));

    const drawNode = (node, context, k) => {
      context.globalAlpha = isFaint(node) ? 0.25 : 1;
      context.fillStyle = colours[node.type];
      context.beginPath();
      context.arc(node.x, node.y, radius(node, k), 0, 2 * Math.PI);
      context.fill();
      context.lineWidth = (node === focus ? 2.5 : 1) / Math.max(1, k);
      context.strokeStyle = node === focus ? colours.ink : colours.card;
      context.stroke();
      context.globalAlpha = 1;
    };

    // What is written, on a screen whose point (0, 0) of the graph is at `x`, `y` and which is `k` times as large.
    const write = (measure, { x, y, k, width, height }) => {
      const places = new Places(), written = [], limit = MAX_NAMES * Math.max(1, k);
      const put = (text, px, py, is) => {
        const wide = measure(text);
        if (px + wide / 2 < 0 || px - wide / 2 > width || py < 0 || py > height) return true;
        const isFree = places.take(px - wide / 2, py, wide);
        if (isFree) written.push({ text, x: px, y: py, ...is });
        return isFree;
      };
      const first = [hovered, focus].filter(Boolean);
      for (const node of [...first, ...data.nodes]) {
        if (written.length >= limit) break;
        if (first.includes(node) && written.some((each) => each.node === node)) continue;
        const name = shorten(node.name), px = node.x * k + x, py = node.y * k + y, far = radius(node, k) * k;
        if (!put(name, px, py + far + FONT, { node })) put(name, px, py - far - FONT / 3, { node });
      }
      for (const link of data.links) {
        if (data.links.length > MAX_NAMED_LINKS && !isNear(link)) continue;
        if (written.length >= limit) break;
        if (link.source === link.target) continue;
        put(link.name, ((link.source.x + link.target.x) / 2) * k + x, ((link.source.y + link.target.y) / 2) * k + y + FONT / 3, { link });
      }
      return written;
    };

    const drawNames = (context, k) => {
      const origin = graph.graph2ScreenCoords(0, 0), ratio = devicePixelRatio;
      context.save();
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.font = colours.font;
      context.textAlign = "center";
      context.lineJoin = "round";
      context.lineWidth = 3;
      context.strokeStyle = colours.card;
      const size = { ...origin, k, width: graph.width(), height: graph.height() };
      for (const { text, x, y, node } of write((text) => context.measureText(text).width, size)) {
        context.globalAlpha = node && isFaint(node) ? 0.3 : 1;
        context.fillStyle = node ? colours.ink : colours.soft;
        context.strokeText(text, x, y);
        context.fillText(text, x, y);
      }
      context.restore();
    };

    const look = (node) => {
      hovered = node ?? undefined;
      beside = new Set([hovered]);
      if (hovered) for (const { source, target } of data.links) {
        if (source === hovered) beside.add(target);
        if (target === hovered) beside.add(source);
      }
      redraw();
    };

    const graph = new ForceGraph(box)
      .backgroundColor("transparent")
      .nodeLabel((node) => tip([["", node.name], ["about", `${node.type === "other" ? "" : `${node.type}, `}${node.facts} ${node.facts === 1 ? "fact" : "facts"}`]]))
      .linkLabel((link) => tip(link.edges.slice(0, 4).flatMap((edge) => [
        ["", `${shorten(edge.from.name)} ${shorten(edge.relation)} ${shorten(edge.to.name)}`],
        ["about", [edge.text, edge.days].filter(Boolean).join(" · ")],
      ])))
      .nodeCanvasObject(drawNode)
      .nodePointerAreaPaint((node, colour, context, k) => {
        context.fillStyle = colour;
        context.beginPath();
        context.arc(node.x, node.y, radius(node, k) + 2, 0, 2 * Math.PI);
        context.fill();
      })
      .linkColor(colourOf)
      .linkWidth((link) => (isNear(link) ? 2 : 1))
      .linkLineDash((link) => (link.over ? [4, 3] : null))
      .linkCurvature((link) => link.curvature ?? 0)
      .linkDirectionalArrowRelPos(1)
      .linkDirectionalArrowLength((link) => (!isDense() && link.edges.every(({ to }) => to === link.target) ? 5 : 0))
      .onRenderFramePost((context, k) => {
        drawNames(context, k);
        if (!data.nodes.length || !Number.isFinite(data.nodes[0].x)) return;
        if (!box.dataset.drawn) performance.mark("graph drawn");
        box.dataset.drawn = data.nodes.length;
      })
      .onNodeClick((node) => onNode(node))
      .onLinkClick((link) => onLink(link))
      .onNodeHover(look)
      .minZoom(0.02)
      .maxZoom(12)
      .onEngineTick(() => { if (!isFitted) fit(0); isFitted = true; })
      .onEngineStop(() => { if (!isMoved) fit(isCalm.matches ? 0 : 300); });
    graph.d3Force("charge").strength(-90).distanceMax(500);
    graph.d3Force("link").distance(55);

    const redraw = () => graph.linkColor(colourOf);  // which marks the picture as to be drawn
    const fit = (ms) => {
      graph.zoomToFit(ms, 45);
      if (graph.zoom() > 2.5) graph.zoom(2.5, ms);
    };
    for (const name of ["wheel", "pointerdown"]) box.addEventListener(name, () => { isMoved = true; }, { passive: true });
    new ResizeObserver(() => graph.width(box.clientWidth).height(box.clientHeight)).observe(box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });

    return {
      show(found) {
        const known = new Map(data.nodes.map((node) => [node.page, node]));
        const nodes = found.nodes.map((node) => Object.assign(known.get(node.page) ?? {}, node));
        const links = bundle(nodes, found.edges);
        const isNew = nodes.filter(({ page }) => known.has(page)).length < nodes.length / 2;
        for (const { source, target } of links) {  // what is new begins where it belongs
          for (const [one, other] of [[source, target], [target, source]]) {
            if (one.x === undefined && other.x !== undefined) Object.assign(one, { x: other.x + 10, y: other.y + 10 });
          }
        }
        data = { nodes, links };
        focus = nodes[found.focus ?? -1];
        hovered = undefined;
        isMoved = false;
        isFitted = !isNew;
        const ticks = Math.max(20, Math.min(isNew ? 200 : 40, Math.round(LAYOUT_MS * 60 / nodes.length)));
        graph.warmupTicks(ticks).cooldownTicks(isCalm.matches ? 0 : Infinity).cooldownTime(4000).graphData(data);
        if (!nodes.length) box.dataset.drawn = 0;
      },
      fit: () => fit(isCalm.matches ? 0 : 300),
      zoom(factor) { isMoved = true; graph.zoom(graph.zoom() * factor, isCalm.matches ? 0 : 150); },
      move(x, y) {
        isMoved = true;
        const at = graph.centerAt(), k = graph.zoom();
        graph.centerAt(at.x + x / k, at.y + y / k);
      },
      // What is drawn, for those who write it into a file.
      describe(measure) {
        const box = graph.getGraphBbox() ?? { x: [0, 1], y: [0, 1] }, k = Math.max(1, graph.zoom()), rim = 60;
        const frame = { k, x: rim - box.x[0] * k, y: rim - box.y[0] * k };
        frame.width = (box.x[1] - box.x[0]) * k + 2 * rim;
        frame.height = (box.y[1] - box.y[0]) * k + 2 * rim;
        return { ...data, frame, colours, radius, focus, colourOf, names: write(measure, frame), font: FONT };
      },
    };
  };

  return { make };
})();
