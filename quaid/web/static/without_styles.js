// force-graph puts two sheets of styles into the page while it loads. The page's policy refuses them, and says so in the
// console each time; graph.css has what is needed of them. graph_drawing.js takes this away again.
"use strict";
document.createElement = (name) => Document.prototype.createElement.call(document, name === "style" ? "template" : name);
