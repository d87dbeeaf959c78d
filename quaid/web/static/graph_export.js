// Writes what is drawn into files: SVG by the DOM, and JSON Canvas 1.0, which Obsidian opens (https://jsoncanvas.org).
"use strict";
const GraphExport = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const SPREAD = 9, WIDE = 260, HIGH = 60;
  const round = (number) => Math.round(number * 10) / 10;

  const measure = (font) => {
    const context = document.createElement("canvas").getContext("2d");
    context.font = font;
    return (text) => context.measureText(text).width;
  };

  const save = (name, type, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };

  const element = (parent, name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };

  const asSvg = (drawing) => {
    const { nodes, links, frame, colours, radius, focus, colourOf, names, font } =
      drawing.describe(measure(`12px ${getComputedStyle(document.body).fontFamily}`));
    const at = ({ x, y }) => [round(x * frame.k + frame.x), round(y * frame.k + frame.y)];
    const root = document.createElementNS(SVG, "svg");
    root.setAttribute("viewBox", `0 0 ${round(frame.width)} ${round(frame.height)}`);
    root.setAttribute("font-family", "system-ui, sans-serif");
    root.setAttribute("font-size", font);
    element(root, "title", {}, `${nodes.length} entities and their relations`);
    element(root, "rect", { width: "100%", height: "100%", fill: colours.card });
    for (const link of links) {
      if (link.source === link.target) continue;
      const [[x1, y1], [x2, y2]] = [at(link.source), at(link.target)];
      const line = element(root, "line", { x1, y1, x2, y2, stroke: colourOf(link), ...(link.over ? { "stroke-dasharray": "4 3" } : {}) });
      element(line, "title", {}, link.edges.map((edge) => `${edge.from.name} ${edge.relation} ${edge.to.name}: ${edge.text}`).join("\n"));
    }
    for (const node of nodes) {
      const [cx, cy] = at(node);
      const stroke = node === focus ? { stroke: colours.ink, "stroke-width": 2.5 } : { stroke: colours.card };
      const dot = element(root, "circle", { cx, cy, r: round(radius(node, frame.k) * frame.k), fill: colours[node.type], ...stroke });
      element(dot, "title", {}, node.name);
    }
    for (const { text, x, y, node } of names) {
      const halo = { stroke: colours.card, "stroke-width": 3, "stroke-linejoin": "round", "paint-order": "stroke" };
      element(root, "text", { x: round(x), y: round(y), "text-anchor": "middle", fill: node ? colours.ink : colours.soft, ...halo }, text);
    }
    save("graph.svg", "image/svg+xml", new XMLSerializer().serializeToString(root));
  };

  // The text of a node there is markdown, and a name is none.
  const plain = (name) => name.replace(/[\\`*_{}[\]()#+\-.!<>|~$%=^:@&]/g, "\\$&");

  const asCanvas = (drawing) => {
    const { nodes, links } = drawing.describe(() => 0);
    const ids = new Map(nodes.map((node, place) => [node, `n${place}`]));
    const made = {
      nodes: nodes.map((node) => ({
        id: ids.get(node),
        ...(node.path ? { type: "file", file: node.path } : { type: "text", text: plain(node.name) }),
        x: Math.round(node.x * SPREAD - WIDE / 2),
        y: Math.round(node.y * SPREAD - HIGH / 2),
        width: WIDE,
        height: HIGH,
      })),
      edges: links.flatMap(({ edges }) => edges).map((edge, place) => ({
        id: `e${place}`,
        fromNode: ids.get(edge.from),
        toNode: ids.get(edge.to),
        label: edge.relation,
      })),
    };
    save("graph.canvas", "application/json", JSON.stringify(made, null, "\t"));
  };

  return { asSvg, asCanvas };
})();
