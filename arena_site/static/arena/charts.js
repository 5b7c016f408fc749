// Reads the values of charts out by mouse, touch and keyboard. Without this module charts stay as the server drew them.
const numbers = (decimals, options = {}) =>
  new Intl.NumberFormat("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals, signDisplay: "negative", ...options });
const minus = (text) => text.replace("-", "−");
const percent = (value, decimals, options) => `${minus(numbers(decimals, options).format(value))}\u202f%`;
const formats = {
  money: (value) => minus(numbers(2, { style: "currency", currency: "USD" }).format(value)),
  price: (value) => percent(value * 100, 1, { maximumFractionDigits: 8 }),
  percent: (value) => percent(value, 2, { signDisplay: "exceptZero" }),
  score: (value) => minus(numbers(3).format(value)),
  signed_score: (value) => minus(numbers(3, { signDisplay: "exceptZero" }).format(value)),
  fraction: (value) => percent(value * 100, 1),
};
const moment = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
const plural = (value, noun) => `${numbers(0, { maximumFractionDigits: 2 }).format(value)} ${noun}${value === 1 ? "" : "s"}`;
const usd = (value) => `$${value < 1 ? Number(value.toPrecision(2)) : numbers(value < 10 ? 2 : 0).format(value)}`;
const positionTexts = {
  days: (at, labels) => `${labels[at]} days before the close`,
  cost: (at) => `${usd(10 ** at)} for 1,000 questions`,
  time: (at) => `${moment.format(at)} UTC`,
  weeks: (at) => `${plural(at, "week")} after the start`,
  questions: (at) => `after ${plural(at, "question")}`,
};

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

function svgElement(name, attributes = {}) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  set(node, attributes);
  return node;
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
}

function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

function markerIcon(curve) {
  const svg = svgElement("svg", { viewBox: "-6 -6 12 12", width: 12, height: 12, class: "marker", "aria-hidden": "true" });
  svg.append(svgElement("path", { d: curve.marker, fill: curve.color }));
  return svg;
}

const dataOf = (figure) => JSON.parse(figure.querySelector('script[type="application/json"]').textContent);

// The box beside a place of a plot, with a heading and rows.
class Readout {
  constructor(plot) {
    this.plot = plot;
    this.box = element("div", { className: "readout", hidden: true });
    this.box.setAttribute("aria-live", "polite");
    plot.append(this.box);
  }

  show(x, heading, ...rows) {
    this.box.replaceChildren(element("strong", { textContent: heading }), ...rows);
    this.box.hidden = false;
    const width = this.box.offsetWidth;
    const right = x + 14 + width < this.plot.clientWidth;
    this.box.style.left = `${right ? x + 14 : Math.max(0, x - 14 - width)}px`;
  }

  hide() {
    this.box.hidden = true;
  }
}

// Reads out the values of all lines at a position.
class LineChart {
  constructor(figure) {
    this.plot = figure.querySelector(".plot");
    this.svg = this.plot.querySelector("svg");
    this.data = dataOf(figure);
    this.index = null; // of the position in the readout, or null
    this.cursor = svgElement("line", { class: "cursor", visibility: "hidden", y1: this.data.top, y2: this.data.bottom });
    this.svg.querySelector(".curve").before(this.cursor);
    this.readout = new Readout(this.plot);
    const nearest = (event) => this.readNearest(event);
    this.svg.addEventListener("pointerdown", nearest);
    this.svg.addEventListener("pointermove", nearest);
    // A tap's values stay until the next tap.
    this.svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.hide());
    this.plot.addEventListener("blur", () => this.hide());
    this.plot.addEventListener("keydown", (event) => this.onKeyDown(event));
    figure.classList.add("interactive");
  }

  onKeyDown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.data.positions.length - 1;
    const at = this.index ?? last;
    const step = event.shiftKey ? 10 : 1;
    const moves = { ArrowLeft: at - step, ArrowRight: at + step, Home: 0, End: last };
    if (event.key in moves) this.read(clamp(moves[event.key], 0, last));
    else if (event.key === "Escape") this.hide();
    else return;
    event.preventDefault();
  }

  x(position) {
    const { left, right, positions } = this.data;
    const [first, last] = [positions[0], positions[positions.length - 1]];
    return left + ((position - first) / (last - first || 1)) * (right - left);
  }

  readNearest(event) {
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) * this.svg.viewBox.baseVal.width) / box.width;
    const distances = this.data.positions.map((position) => Math.abs(this.x(position) - x));
    this.read(distances.indexOf(Math.min(...distances)));
  }

  read(index) {
    this.index = index;
    const { axis, curves, labels, positions, unit } = this.data;
    const x = this.x(positions[index]);
    set(this.cursor, { visibility: "visible", x1: x, x2: x });
    const rows = curves
      .map((curve) => ({ curve, value: curve.values[index] }))
      .filter(({ value }) => value !== null)
      .sort((a, b) => b.value - a.value)
      .map(({ curve, value }) => element("div", {}, markerIcon(curve), element("span", { textContent: curve.name }), element("b", { textContent: formats[unit](value) })));
    const cohorts = Math.max(0, ...curves.map((curve) => curve.numbers?.[index] ?? 0));
    const place = (x / this.svg.viewBox.baseVal.width) * this.svg.clientWidth;
    this.readout.show(place, positionTexts[axis](positions[index], labels) + (cohorts ? `, ${plural(cohorts, "cohort")}` : ""), ...rows);
  }

  hide() {
    this.index = null;
    this.readout.hide();
    this.cursor.setAttribute("visibility", "hidden");
  }
}

// Reads out the points of square diagrams side by side.
class DiagramGrid {
  constructor(figure) {
    const data = dataOf(figure);
    figure.querySelectorAll(".plot").forEach((plot, index) => this.enhance(plot, data, data.panels[index]));
    figure.classList.add("interactive");
  }

  enhance(plot, data, { points }) {
    const svg = plot.querySelector("svg");
    const readout = new Readout(plot);
    const ring = svgElement("circle", { class: "ring", r: 8, visibility: "hidden" });
    svg.append(ring);
    let shown = null;
    const place = ([x, y]) => [data.left + x * data.side, data.top + (1 - y) * data.side];
    const show = (index) => {
      shown = index;
      const [x, y, text] = points[index];
      const [cx, cy] = place(points[index]);
      set(ring, { cx, cy, visibility: "visible" });
      const rows = [x, y].map((share, axis) => element("div", {}, element("span", { textContent: data.titles[axis] }), element("b", { textContent: percent(share * 100, 1) })));
      readout.show((cx / svg.viewBox.baseVal.width) * svg.clientWidth, text, ...rows);
    };
    const hide = () => {
      shown = null;
      readout.hide();
      ring.setAttribute("visibility", "hidden");
    };
    const nearest = (event) => {
      const box = svg.getBoundingClientRect();
      const scale = svg.viewBox.baseVal.width / box.width;
      const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
      const distances = points.map((point) => Math.hypot(place(point)[0] - x, place(point)[1] - y));
      const index = distances.indexOf(Math.min(...distances));
      if (distances[index] < 30) show(index);
      else hide();
    };
    if (!points.length) return;
    plot.addEventListener("pointerdown", nearest);
    plot.addEventListener("pointermove", nearest);
    plot.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", (event) => {
      const last = points.length - 1;
      const moves = { ArrowLeft: (shown ?? 1) - 1, ArrowRight: (shown ?? -1) + 1, Home: 0, End: last };
      if (event.key === "Escape") hide();
      else if (event.key in moves) show(clamp(moves[event.key], 0, last));
      else return;
      event.preventDefault();
    });
  }
}

function enhance(root) {
  root.querySelectorAll('figure[data-chart="lines"]:not(.interactive)').forEach((figure) => new LineChart(figure));
  root.querySelectorAll('figure[data-chart="grid"]:not(.interactive)').forEach((figure) => new DiagramGrid(figure));
}

const isPlainClick = (event) => !(event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);

// A link with data-section leads to the same page with another version of a section: only the section is replaced.
document.addEventListener("click", async (event) => {
  const link = event.target.closest?.("a[data-section]");
  if (!link || !isPlainClick(event)) return;
  event.preventDefault();
  try {
    const answer = await fetch(link.href);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById(link.dataset.section);
    document.getElementById(link.dataset.section).replaceWith(fresh);
    history.replaceState(null, "", link.href);
    enhance(fresh);
    fresh.dispatchEvent(new CustomEvent("arena:section-replaced", { bubbles: true }));
    fresh.querySelector("a[data-section][aria-current]")?.focus();
  } catch {
    location.assign(link.href);
  }
});

enhance(document);
