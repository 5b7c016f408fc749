// Makes charts interactive: line charts are redrawn at the width of the page from the JSON beside them and can be
// zoomed; values are read out by mouse, touch and keyboard. Without this module charts stay as the server drew them.
const NARROW = 720; // pixels; below, lines have less room for the names at their ends
const LABEL_HEIGHT = 18;
const MARKERS_PER_LINE = 5;
const HEADROOM = 0.06;
const MINIMUM_RANGE = 0.01;
const TOP = 36;
const BOTTOM = 52;
const NUMBERS_HEIGHT = 16; // of the row with the numbers of cohorts
const DAY = 864e5;
const MINUTE = 6e4;
const TIME_STEPS = [
  ...[1, 2, 5, 10, 30, 60, 180, 360, 720].map((minutes) => minutes * MINUTE),
  ...[1, 2, 7, 14, 28, 91, 364].map((days) => days * DAY),
];

const numbers = (decimals, options = {}) =>
  new Intl.NumberFormat("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals, signDisplay: "negative", ...options });
const minus = (text) => text.replace("-", "−");
const dollars = (value, decimals) => minus(numbers(decimals, { style: "currency", currency: "USD" }).format(value));
const percent = (value, decimals, options) => `${minus(numbers(decimals, options).format(value))}\u202f%`;
const formats = {
  money: (value, decimals = 2) => dollars(value, decimals),
  price: (value, decimals) =>
    decimals === undefined ? percent(value * 100, 1, { maximumFractionDigits: 8 }) : formats.fraction(value, decimals),
  percent: (value, decimals = 2) => percent(value, decimals, { signDisplay: "exceptZero" }),
  score: (value, decimals = 3) => minus(numbers(decimals).format(value)),
  signed_score: (value, decimals = 3) => minus(numbers(decimals, { signDisplay: "exceptZero" }).format(value)),
  fraction: (value, decimals = 3) => percent(value * 100, Math.max(0, decimals - 2)),
};
const date = (options) => new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...options });
const clock = { hour: "2-digit", minute: "2-digit" };
const day = date({ day: "numeric", month: "short" });
const hour = date(clock);
const moment = date({ day: "numeric", month: "short", year: "numeric", ...clock });
const plural = (value, noun) => `${numbers(0, { maximumFractionDigits: 2 }).format(value)} ${noun}${value === 1 ? "" : "s"}`;
const month = date({ month: "short", year: "numeric" });
const months = { isTime: true, tick: (at) => month.format(at), text: (at) => date({ day: "numeric", month: "short", year: "numeric" }).format(at) };
const usd = (value) => `$${value < 1 ? Number(value.toPrecision(2)) : numbers(value < 10 ? 2 : 0).format(value)}`;
// The logarithms of 1, 2 and 5 times the powers of ten; of the powers alone where that would be more than `most`.
function logTicks(low, high, most) {
  const powers = Array.from({ length: Math.ceil(high) - Math.floor(low) + 1 }, (_, index) => Math.floor(low) + index);
  const ticks = (factors) =>
    powers.flatMap((power) => factors.map((factor) => power + Math.log10(factor))).filter((at) => at >= low && at <= high);
  return ticks([1, 2, 5]).length > most ? ticks([1]) : ticks([1, 2, 5]);
}
const axes = {
  released_on: months,
  knowledge_cutoff: months,
  days: { tick: (at, labels) => labels[at], text: (at, labels) => `${labels[at]} days before the close` },
  cost: { ticks: logTicks, tick: (at) => usd(10 ** at), text: (at) => `${usd(10 ** at)} for 1,000 questions` },
  time: { isTime: true, tick: (at) => (at % DAY === 0 ? day : hour).format(at), text: (at) => `${moment.format(at)} UTC` },
  weeks: { tick: (at) => (at ? plural(at, "week") : "0"), text: (at) => `${plural(at, "week")} after the start` },
  questions: { tick: (at) => numbers(0).format(at), text: (at) => `after ${plural(at, "question")}` },
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

// The index of the first of ascending values that is at least `value`.
function firstFrom(values, value) {
  const found = values.findIndex((each) => each >= value);
  return found < 0 ? values.length : found;
}

function valueStep(low, high, most) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
}

function multiples(step, low, high) {
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, index) => (first + index) * step);
}

// Heights moved apart so that names at them do not overlap, in the same order.
function spread(heights, top, bottom) {
  const order = heights.map((_, index) => index).sort((a, b) => heights[a] - heights[b]);
  const moved = [...heights];
  let minimum = top;
  for (const index of order) {
    moved[index] = Math.max(moved[index], minimum);
    minimum = moved[index] + LABEL_HEIGHT;
  }
  let maximum = bottom;
  for (const index of order.reverse()) {
    moved[index] = Math.min(moved[index], maximum);
    maximum = moved[index] - LABEL_HEIGHT;
  }
  return moved;
}

// Writes as much of a text as fits.
function shorten(label, text, width) {
  label.textContent = text;
  for (let length = text.length - 1; length > 2 && label.getComputedTextLength() > width; length -= 1) {
    label.textContent = `${text.slice(0, length).trimEnd()}…`;
  }
}

const path = (points) => (points.length ? `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}` : "");
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

class LineChart {
  constructor(figure) {
    this.figure = figure;
    this.plot = figure.querySelector(".plot");
    this.svg = this.plot.querySelector("svg");
    this.data = dataOf(figure);
    this.axis = axes[this.data.axis];
    this.titles = [...this.svg.querySelectorAll(".axis-title")];
    this.isolated = new Set(); // indices of the curves shown alone; empty: all are shown
    this.relative = false;
    this.index = null; // of the position in the readout, or null
    const { positions } = this.data;
    this.whole = [positions[0], positions[positions.length - 1]];
    if (this.whole[0] === this.whole[1]) this.whole[1] += 1;
    this.shown = this.whole; // the positions at both ends
    this.height = this.svg.viewBox.baseVal.height;
    this.numbered = this.data.curves.some((curve) => curve.numbers);
    this.addLayers();
    this.addToolbar();
    this.addListeners();
    new ResizeObserver(() => this.draw()).observe(this.plot);
    this.draw();
    figure.classList.add("interactive");
  }

  addLayers() {
    const id = `clip-${(LineChart.count = (LineChart.count ?? 0) + 1)}`;
    const clip = svgElement("clipPath", { id });
    this.clip = svgElement("rect");
    clip.append(this.clip);
    this.ticks = this.svg.querySelector(".axis");
    this.ticks.before(clip);
    this.curves = [...this.svg.querySelectorAll("g.curve")].map((group, index) => {
      const part = (name) => group.querySelector(name);
      part(".markers")?.remove();
      const markers = svgElement("g", { class: "markers", "clip-path": `url(#${id})`, stroke: "none" });
      part(".leader").before(markers);
      for (const each of group.querySelectorAll(".line, .band")) each.setAttribute("clip-path", `url(#${id})`);
      const parts = { line: part(".line"), few: part(".few"), band: part(".band"), leader: part(".leader"), end: part(".end-marker"), label: part("text") };
      return { group, markers, ...parts, data: this.data.curves[index] };
    });
    this.events = [...this.svg.querySelectorAll(".events path")];
    this.cursor = svgElement("line", { class: "cursor", visibility: "hidden" });
    this.selection = svgElement("rect", { class: "selection", visibility: "hidden" });
    this.overlay = svgElement("rect", { class: "overlay", fill: "transparent" });
    // Below curves and events, so that events keep their titles and links.
    this.curves[0].group.before(this.cursor, this.selection, this.overlay);
    this.readout = new Readout(this.plot);
  }

  addToolbar() {
    const bar = element("div", { className: "toolbar" });
    this.buttons = this.data.curves.map((curve, index) => {
      const button = element("button", { type: "button", title: `Show ${curve.name} alone, or with others` });
      button.append(markerIcon(curve), element("bdi", { textContent: curve.name }));
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => this.toggle(index));
      return button;
    });
    if (this.buttons.length > 1) {
      const legend = element("div", { className: "legend" }, ...this.buttons);
      set(legend, { role: "group", "aria-label": "Lines" });
      bar.append(legend);
    }
    this.figure.querySelector("ul.legend")?.remove();
    const controls = element("div", { className: "controls" });
    if (this.data.unit === "money" && this.data.baseline) {
      this.units = ["$", "%"].map((sign) => {
        const name = sign === "$" ? "Show values in dollars" : "Show returns in percent";
        const button = element("button", { type: "button", textContent: sign, title: name });
        button.setAttribute("aria-label", name);
        button.addEventListener("click", () => {
          this.relative = sign === "%";
          this.draw();
        });
        return button;
      });
      controls.append(element("span", { className: "units" }, ...this.units));
    }
    this.resetButton = element("button", { type: "button", textContent: "Reset zoom", disabled: true });
    this.resetButton.title = "Drag over the chart to zoom; so do + and − on the keyboard, arrows read values out";
    this.resetButton.addEventListener("click", () => this.reset());
    controls.append(this.resetButton);
    bar.append(controls);
    this.plot.before(bar);
  }

  addListeners() {
    const area = this.overlay;
    let from = null;
    const place = (event) => event.clientX - this.svg.getBoundingClientRect().left;
    area.addEventListener("pointerdown", (event) => {
      this.readNearest(place(event));
      if (event.pointerType !== "mouse" || event.button !== 0) return;
      from = place(event);
      area.setPointerCapture(event.pointerId);
    });
    area.addEventListener("pointermove", (event) => {
      this.readNearest(place(event));
      if (from === null) return;
      const [left, right] = [from, place(event)].sort((a, b) => a - b).map((x) => clamp(x, this.left, this.right));
      set(this.selection, { visibility: "visible", x: left, width: right - left });
    });
    area.addEventListener("pointerup", (event) => {
      if (from === null) return;
      const [left, right] = [from, place(event)].sort((a, b) => a - b).map((x) => clamp(x, this.left, this.right));
      from = null;
      this.selection.setAttribute("visibility", "hidden");
      if (right - left > 8) this.zoomTo(this.position(left), this.position(right));
    });
    area.addEventListener("dblclick", () => this.reset());
    // A tap's values stay until the next tap.
    area.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.hideReadout());
    this.plot.addEventListener("blur", () => this.hideReadout());
    this.plot.addEventListener("keydown", (event) => this.onKeyDown(event));
  }

  onKeyDown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.data.positions.length - 1;
    const at = this.index ?? last;
    const step = event.shiftKey ? 10 : 1;
    const moves = { ArrowLeft: at - step, ArrowRight: at + step, Home: 0, End: last };
    if (event.key in moves) this.readOut(clamp(moves[event.key], 0, last));
    else if (event.key === "+" || event.key === "=") this.zoomBy(2);
    else if (event.key === "-") this.zoomBy(0.5);
    else if (event.key === "Escape" || event.key === "0") this.reset();
    else return;
    event.preventDefault();
  }

  zoomBy(factor) {
    const [first, last] = this.shown;
    const middle = this.index === null ? (first + last) / 2 : this.data.positions[this.index];
    const half = (last - first) / factor / 2;
    this.zoomTo(middle - half, middle + half);
  }

  zoomTo(first, last) {
    const [low, high] = this.whole;
    const shown = [Math.max(first, low), Math.min(last, high)];
    if (this.data.positions.filter((at) => shown[0] <= at && at <= shown[1]).length < 2) return;
    this.shown = shown;
    this.draw();
  }

  reset() {
    this.shown = this.whole;
    this.draw();
  }

  toggle(index) {
    if (!this.isolated.delete(index)) this.isolated.add(index);
    if (this.isolated.size === this.data.curves.length) this.isolated.clear();
    this.draw();
  }

  isShown(index) {
    return this.isolated.size === 0 || this.isolated.has(index);
  }

  get isZoomed() {
    return this.shown !== this.whole && (this.shown[0] > this.whole[0] || this.shown[1] < this.whole[1]);
  }

  value(raw) {
    if (raw === null) return null;
    return this.relative ? (raw / this.data.baseline - 1) * 100 : raw;
  }

  format(value, decimals) {
    return formats[this.relative ? "percent" : this.data.unit](value, decimals);
  }

  x(position) {
    const [first, last] = this.shown;
    return this.left + ((position - first) / (last - first)) * (this.right - this.left);
  }

  position(x) {
    const [first, last] = this.shown;
    return first + ((x - this.left) / (this.right - this.left)) * (last - first);
  }

  y(value) {
    return this.bottom - ((value - this.low) / (this.high - this.low)) * (this.bottom - TOP);
  }

  widestName() {
    return Math.max(
      ...this.curves.map(({ label, data }) => {
        label.textContent = data.name;
        return label.getComputedTextLength();
      }),
    );
  }

  updateScales(width) {
    this.narrow = width < NARROW;
    this.left = this.narrow ? 62 : 76;
    this.figure.classList.toggle("narrow", this.narrow);
    this.gap = this.narrow ? 12 : 24; // between the ends of lines and their names
    this.right = width - (this.narrow ? Math.min(this.widestName() + this.gap, width * 0.38) : 160);
    for (const { label, data } of this.curves) shorten(label, data.name, width - this.right - this.gap);
    this.bottom = this.currentHeight - BOTTOM - (this.numbered ? NUMBERS_HEIGHT : 0);
    const { positions, baseline, curves, events } = this.data;
    const [first, last] = this.shown;
    // One point beyond each edge, for the lines across it.
    const from = Math.max(0, firstFrom(positions, first) - 1);
    const to = firstFrom(positions, last) + 2;
    const values = [];
    curves.forEach((curve, index) => {
      if (!this.isShown(index)) return;
      values.push(...curve.values.slice(from, to));
      for (const ends of curve.band?.slice(from, to) ?? []) values.push(...(ends ?? []));
    });
    if (baseline !== null && !this.isZoomed) values.push(baseline);
    for (const [at, value] of events) if (first <= at && at <= last) values.push(value);
    const known = values.filter((value) => value !== null).map((value) => this.value(value));
    let [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
    const least = Math.max(Math.abs(low), Math.abs(high)) * MINIMUM_RANGE || 1;
    if (high - low < least) [low, high] = [(low + high - least) / 2, (low + high + least) / 2];
    const room = (high - low) * HEADROOM;
    this.low = low - room;
    this.high = high + room;
  }

  draw() {
    const width = this.plot.clientWidth;
    if (!width) return;
    this.currentHeight = width < NARROW ? clamp(width * 0.85, 280, this.height) : this.height;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${this.currentHeight}`);
    this.updateScales(width);
    const inner = { y: TOP - 8, height: this.bottom - TOP + 8 };
    set(this.overlay, { x: this.left, width: this.right - this.left, ...inner });
    set(this.clip, { x: this.left - 5, width: this.right - this.left + 10, ...inner });
    set(this.selection, inner);
    this.drawAxes();
    this.drawCurves();
    const [first, last] = this.shown;
    this.events.forEach((event, index) => {
      const [at, value, x, y] = this.data.events[index];
      const moved = `translate(${this.x(at) - x},${this.y(this.value(value)) - y})`;
      set(event, { transform: moved, visibility: first <= at && at <= last ? "visible" : "hidden" });
    });
    this.buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(this.isolated.has(index))));
    this.units?.forEach((button, index) => button.setAttribute("aria-pressed", String(this.relative === (index === 1))));
    this.resetButton.disabled = !this.isZoomed;
    if (this.index !== null) this.readOut(this.index);
  }

  positionTicks() {
    const [first, last] = this.shown;
    const most = Math.max(2, Math.round((this.right - this.left) / (this.narrow ? 60 : 120)));
    if (this.axis.ticks) return this.axis.ticks(first, last, most);
    if (this.axis.isTime) {
      const step = TIME_STEPS.find((each) => (last - first) / each <= most) ?? TIME_STEPS[TIME_STEPS.length - 1];
      const midnight = Math.floor(first / DAY) * DAY;
      return multiples(step, first - midnight, last - midnight).map((at) => at + midnight);
    }
    const ticks = multiples(valueStep(first, last, most), first, last);
    return ["questions", "days"].includes(this.data.axis) ? ticks.filter(Number.isInteger) : ticks;
  }

  // Of how many cohorts the lines are means at a position; a range where they differ.
  numbersAt(position) {
    const index = Math.max(0, firstFrom(this.data.positions, position + 1e-9) - 1);
    const known = this.data.curves.map((curve) => curve.numbers?.[index]).filter(Boolean);
    return known.length ? [...new Set([Math.min(...known), Math.max(...known)])].join("–") : "0";
  }

  drawAxes() {
    const step = valueStep(this.low, this.high, 7);
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const [yTitle, xTitle] = this.titles;
    const write = (text, attributes) => Object.assign(svgElement("text", { stroke: "none", ...attributes }), { textContent: text });
    const parts = [yTitle];
    for (const value of multiples(step, this.low, this.high)) {
      const y = this.y(value);
      parts.push(svgElement("line", { x1: this.left, x2: this.right, y1: y, y2: y }));
      parts.push(write(this.format(value, decimals), { x: this.left - 8, y, dy: "0.35em", "text-anchor": "end" }));
    }
    for (const at of this.positionTicks()) {
      const x = this.x(at);
      parts.push(svgElement("line", { class: "tick", x1: x, x2: x, y1: this.bottom, y2: this.bottom + 5 }));
      parts.push(write(this.axis.tick(at, this.data.labels), { x, y: this.bottom + 21, "text-anchor": "middle" }));
      if (this.numbered) parts.push(write(this.numbersAt(at), { class: "cohorts", x, y: this.bottom + 39, "text-anchor": "middle" }));
    }
    if (this.numbered) parts.push(write("Cohorts", { x: this.left - 8, y: this.bottom + 39, "text-anchor": "end" }));
    yTitle.dataset.title ??= yTitle.textContent;
    yTitle.textContent = this.relative ? "Return (%)" : yTitle.dataset.title;
    set(xTitle, { x: (this.left + this.right) / 2, y: this.bottom + 44 + (this.numbered ? NUMBERS_HEIGHT : 0) });
    this.ticks.replaceChildren(...parts, xTitle);
    const line = this.svg.querySelector(".baseline");
    if (!line) return;
    const y = this.y(this.value(this.data.baseline));
    const inside = y >= TOP - 8 && y <= this.bottom;
    set(line, { x1: this.left, x2: this.right, y1: y, y2: y, visibility: inside ? "visible" : "hidden" });
  }

  drawCurves() {
    const { positions } = this.data;
    const [first, last] = this.shown;
    const points = this.curves.map(({ data }) =>
      positions.map((at, index) => [at, this.value(data.values[index])])
        .filter(([, value]) => value !== null)
        .map(([at, value]) => [this.x(at), this.y(value), at]));
    // The last point of each line inside the chart; undefined if there is none.
    const ends = points.map((each) => [...each].reverse().find(([, y, at]) => first <= at && at <= last && y >= TOP - 8 && y <= this.bottom));
    const heights = spread(ends.map((end) => end?.[1] ?? this.bottom), TOP + 9, this.bottom);
    this.curves.forEach(({ group, data, line, few, band, leader, end, label, markers }, index) => {
      group.classList.toggle("faded", !this.isShown(index));
      group.classList.toggle("isolated", this.isolated.has(index));
      const from = few ? this.x(positions[Math.max(0, data.first_of_few - 1)]) : Infinity;
      line.setAttribute("d", path(points[index].filter(([x]) => x <= from)));
      few?.setAttribute("d", path(points[index].filter(([x]) => x >= from)));
      if (band) {
        const around = positions.map((at, place) => [this.x(at), data.band[place]]).filter(([, both]) => both);
        const low = around.map(([x, both]) => [x, this.y(both[0])]);
        if (around.length === 1) {
          const [[x, [least, most]]] = around;
          const [top, bottom] = [this.y(most), this.y(least)];
          band.setAttribute("d", `${path([[x - 3, bottom], [x + 3, bottom], [x + 3, top], [x - 3, top]])}Z`);
        } else band.setAttribute("d", `${path([...low, ...around.map(([x, both]) => [x, this.y(both[1])]).reverse()])}Z`);
      }
      const at = ends[index];
      const visibility = at ? "visible" : "hidden";
      for (const part of [end, leader, label]) part.setAttribute("visibility", visibility);
      if (at) {
        set(end, { d: data.marker, transform: `translate(${at[0]},${at[1]}) scale(1.25)` });
        leader.setAttribute("d", path([at, [this.right + this.gap - 4, heights[index]]]));
      }
      set(label, { x: this.right + this.gap, y: heights[index] });
      const reach = (this.right - this.left) / MARKERS_PER_LINE;
      const wanted = data.dashed ? [] : [...Array(MARKERS_PER_LINE).keys()].map((n) => this.left + reach * (n + 0.2 + (0.6 * index) / this.curves.length));
      const marked = wanted.map((from) => points[index].find(([x]) => x >= from && x < from + reach)).filter(Boolean);
      markers.replaceChildren(...marked.map(([x, y]) => svgElement("path", { d: data.marker, transform: `translate(${x},${y})` })));
    });
  }

  readNearest(x) {
    const wanted = this.position(x);
    const { positions } = this.data;
    const after = Math.min(firstFrom(positions, wanted), positions.length - 1);
    const before = Math.max(0, after - 1);
    this.readOut(wanted - positions[before] < positions[after] - wanted ? before : after);
  }

  readOut(index) {
    this.index = index;
    const at = this.data.positions[index];
    const x = this.x(at);
    if (x < this.left - 1 || x > this.right + 1) return this.hideReadout();
    set(this.cursor, { visibility: "visible", x1: x, x2: x, y1: TOP, y2: this.bottom });
    const rows = this.data.curves
      .map((curve, place) => ({ curve, value: this.value(curve.values[index]), shown: this.isShown(place) }))
      .filter(({ value, shown }) => value !== null && shown)
      .sort((a, b) => b.value - a.value)
      .map(({ curve, value }) => element("div", {}, markerIcon(curve), element("span", { textContent: curve.name }), element("b", { textContent: this.format(value) })));
    const cohorts = Math.max(0, ...this.data.curves.map((curve) => curve.numbers?.[index] ?? 0));
    this.readout.show(x, this.axis.text(at, this.data.labels) + (cohorts ? `, ${plural(cohorts, "cohort")}` : ""), ...rows);
    return undefined;
  }

  hideReadout() {
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
