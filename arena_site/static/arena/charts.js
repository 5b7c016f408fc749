// Makes charts interactive: redraws the server's SVG at the width of the page, from the JSON beside it. Without this
// module charts stay as the server drew them. D3 provides scales, lines, zoom and selections.
const d3 = window.d3;
const NARROW = 720; // pixels; below, names do not fit at the ends of lines
const LABEL_HEIGHT = 18;
const MARKERS_PER_LINE = 5;
const HEADROOM = 0.06;
const MINIMUM_RANGE = 0.01;

const numbers = (decimals, options = {}) =>
  new Intl.NumberFormat("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals, signDisplay: "negative", ...options });
const minus = (text) => text.replace("-", "−");
const formats = {
  money: (value, decimals = 2) => minus(numbers(decimals, { style: "currency", currency: "USD" }).format(value)),
  percent: (value, decimals = 2) => minus(numbers(decimals, { signDisplay: "exceptZero" }).format(value)) + "\u202f%",
  fraction: (value, decimals = 3) => minus(numbers(Math.max(0, decimals - 2)).format(value * 100)) + "\u202f%",
  price: (value, decimals = 3) => minus(numbers(decimals).format(value)),
  score: (value, decimals = 3) => minus(numbers(decimals).format(value)),
  count: (value, decimals = 0) => minus(numbers(decimals).format(value)),
};
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const hour = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
const moment = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZone: "UTC",
});

function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

// A curve's marker in its colour, for the legend and the readout.
function markerIcon(curve) {
  const svg = d3.create("svg").attr("viewBox", "-6 -6 12 12").attr("width", 12).attr("height", 12).attr("class", "marker");
  svg.attr("aria-hidden", "true").append("path").attr("d", curve.marker).attr("fill", curve.color);
  return svg.node();
}

// Heights moved apart so that names at them do not overlap, in the same order.
function spread(heights, top, bottom) {
  const order = d3.range(heights.length).sort((a, b) => heights[a] - heights[b]);
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

class Chart {
  constructor(figure) {
    this.figure = figure;
    this.plot = figure.querySelector(".plot");
    this.svg = d3.select(this.plot.querySelector("svg"));
    this.data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    this.time = this.data.axis === "time";
    this.isolated = new Set(); // indices of the curves shown alone; empty: all are shown
    this.relative = false;
    this.index = null; // of the position in the readout, or null
    this.transform = d3.zoomIdentity;
    this.height = this.svg.node().viewBox.baseVal.height;
    this.addLayers();
    this.addToolbar();
    this.addListeners();
    new ResizeObserver(() => this.draw()).observe(this.plot);
    this.draw();
    figure.classList.add("interactive");
  }

  addLayers() {
    const id = `clip-${(Chart.count = (Chart.count ?? 0) + 1)}`;
    this.clip = this.svg.insert("clipPath", ".axis").attr("id", id).append("rect");
    this.groups = this.svg.selectAll("g.curve").data(this.data.curves);
    this.groups.select(".markers").remove();
    this.groups.select(".line").attr("clip-path", `url(#${id})`);
    this.groups.insert("g", ".leader").attr("class", "markers").attr("clip-path", `url(#${id})`);
    this.events = this.svg.selectAll(".events path").data(this.data.events);
    this.cursor = this.svg.insert("line", "g.curve").attr("class", "cursor").attr("visibility", "hidden");
    this.selection = this.svg.insert("rect", "g.curve").attr("class", "selection").attr("visibility", "hidden");
    // Below curves and events, so that markers on them keep their titles and links.
    this.overlay = this.svg.insert("rect", "g.curve").attr("class", "overlay").attr("fill", "transparent");
    this.readout = element("div", { className: "readout", hidden: true });
    this.readout.setAttribute("aria-live", "polite");
    this.plot.append(this.readout);
  }

  addToolbar() {
    const bar = element("div", { className: "toolbar" });
    this.buttons = this.data.curves.map((curve, index) => {
      const button = element("button", { type: "button", title: `Show ${curve.name} alone, or with others` });
      button.append(markerIcon(curve), curve.name);
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => this.toggle(index));
      return button;
    });
    if (this.buttons.length > 1) {
      const legend = element("div", { className: "legend" }, ...this.buttons);
      legend.setAttribute("role", "group");
      legend.setAttribute("aria-label", "Curves");
      bar.append(legend);
    }
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
    this.zoom = d3.zoom().scaleExtent([1, 500]).on("zoom", () => {
      this.transform = d3.event.transform;
      this.draw();
    });
    // The wheel scrolls the page and one finger reads values out: only pinches and Ctrl with the wheel zoom.
    this.zoom.filter(() => {
      const event = d3.event;
      return event.type === "wheel" ? event.ctrlKey : event.type.startsWith("touch") && event.touches.length > 1;
    });
    this.overlay.call(this.zoom).on("dblclick.zoom", () => this.reset());
    const area = this.overlay.node();
    let from = null;
    const place = (event) => event.clientX - this.plot.querySelector("svg").getBoundingClientRect().left;
    area.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" || event.button !== 0) return;
      from = place(event);
      area.setPointerCapture(event.pointerId);
    });
    area.addEventListener("pointermove", (event) => {
      this.readNearest(place(event));
      if (from === null) return;
      const [left, right] = d3.extent([from, place(event)]);
      const shown = Math.max(left, this.left);
      this.selection.attr("visibility", "visible").attr("x", shown);
      this.selection.attr("width", Math.max(0, Math.min(right, this.right) - shown));
    });
    area.addEventListener("pointerup", (event) => {
      if (from === null) return;
      const [left, right] = d3.extent([from, place(event)]).map((at) => Math.min(Math.max(at, this.left), this.right));
      from = null;
      this.selection.attr("visibility", "hidden");
      if (right - left > 8) this.zoomTo(this.x.invert(left), this.x.invert(right));
    });
    area.addEventListener("pointerleave", () => this.hideReadout());
    this.plot.addEventListener("blur", () => this.hideReadout());
    this.plot.addEventListener("keydown", (event) => this.onKeyDown(event));
  }

  onKeyDown(event) {
    const last = this.data.positions.length - 1;
    const at = this.index ?? last;
    const step = event.shiftKey ? 10 : 1;
    const moves = { ArrowLeft: at - step, ArrowRight: at + step, Home: 0, End: last };
    if (event.key in moves) this.readOut(Math.min(Math.max(moves[event.key], 0), last));
    else if (event.key === "+" || event.key === "=") this.zoomBy(2);
    else if (event.key === "-") this.zoomBy(0.5);
    else if (event.key === "Escape" || event.key === "0") this.reset();
    else return;
    event.preventDefault();
  }

  zoomBy(factor) {
    const [first, last] = this.x.domain().map(Number);
    const middle = this.index === null ? (first + last) / 2 : this.data.positions[this.index];
    const half = (last - first) / factor / 2;
    this.zoomTo(middle - half, middle + half);
  }

  // Zooms to the range between two positions.
  zoomTo(first, last) {
    const [low, high] = this.fullScale.domain().map(Number);
    const from = Math.max(Number(first), low);
    const to = Math.min(Number(last), high);
    if (this.data.positions.filter((at) => from <= at && at <= to).length < 2) return;
    const factor = (high - low) / (to - from);
    const moved = d3.zoomIdentity.scale(factor).translate(this.left / factor - this.fullScale(from), 0);
    this.overlay.call(this.zoom.transform, moved);
  }

  reset() {
    this.overlay.call(this.zoom.transform, d3.zoomIdentity);
  }

  toggle(index) {
    if (!this.isolated.delete(index)) this.isolated.add(index);
    if (this.isolated.size === this.data.curves.length) this.isolated.clear();
    this.draw();
  }

  isShown(index) {
    return this.isolated.size === 0 || this.isolated.has(index);
  }

  value(raw) {
    if (raw === null) return null;
    return this.relative ? (raw / this.data.baseline - 1) * 100 : raw;
  }

  format(value, decimals) {
    return formats[this.relative ? "percent" : this.data.unit](value, decimals);
  }

  updateScales(width) {
    const { positions } = this.data;
    this.left = width < NARROW ? 62 : 76;
    this.right = width - (width < NARROW ? 14 : 160);
    this.bottom = this.currentHeight - 34;
    const ends = [positions[0], positions[positions.length - 1]];
    if (ends[0] === ends[1]) ends[1] += 1;
    this.fullScale = (this.time ? d3.scaleUtc() : d3.scaleLinear()).domain(ends).range([this.left, this.right]);
    this.x = this.transform.rescaleX(this.fullScale);
    const [first, last] = this.x.domain().map(Number);
    const values = [];
    this.data.curves.forEach((curve, index) => {
      if (!this.isShown(index)) return;
      // One point beyond each edge, for the lines across it.
      const from = Math.max(0, d3.bisectLeft(positions, first) - 1);
      const to = d3.bisectRight(positions, last) + 1;
      values.push(...curve.values.slice(from, to).filter((value) => value !== null));
    });
    if (this.data.baseline !== null && this.transform.k === 1) values.push(this.data.baseline);
    for (const [at, value] of this.data.events) if (first <= at && at <= last) values.push(value);
    let [low, high] = d3.extent(values.map((value) => this.value(value)));
    const least = Math.max(Math.abs(low), Math.abs(high)) * MINIMUM_RANGE || 1;
    if (high - low < least) [low, high] = [(low + high - least) / 2, (low + high + least) / 2];
    const room = (high - low) * HEADROOM;
    this.y = d3.scaleLinear().domain([low - room, high + room]).range([this.bottom, 14]);
  }

  draw() {
    const width = this.plot.clientWidth;
    if (!width) return;
    this.currentHeight = width < NARROW ? Math.max(240, Math.min(this.height, width * 0.75)) : this.height;
    this.svg.attr("viewBox", `0 0 ${width} ${this.currentHeight}`);
    this.updateScales(width);
    for (const area of [this.clip, this.overlay]) {
      area.attr("x", this.left).attr("y", 6).attr("width", this.right - this.left).attr("height", this.bottom - 6);
    }
    this.clip.attr("x", this.left - 5).attr("width", this.right - this.left + 10);
    this.selection.attr("y", 14).attr("height", this.bottom - 14);
    this.zoom.extent([[this.left, 0], [this.right, this.currentHeight]]).translateExtent([[this.left, 0], [this.right, this.currentHeight]]);
    this.drawAxes();
    this.drawLines(width);
    this.buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(this.isolated.has(index))));
    this.units?.forEach((button, index) => button.setAttribute("aria-pressed", String(this.relative === (index === 1))));
    this.resetButton.disabled = this.transform.k === 1;
    if (this.index !== null) this.readOut(this.index);
  }

  drawAxes() {
    const values = this.y.ticks(5);
    const decimals = Math.max(0, -Math.floor(Math.log10(values[1] - values[0] || 1) + 1e-9));
    const times = this.x.ticks(Math.max(2, Math.round((this.right - this.left) / 120)));
    const axis = this.svg.select(".axis");
    axis.selectAll("*").remove();
    for (const value of values) {
      const at = this.y(value);
      axis.append("line").attr("x1", this.left).attr("x2", this.right).attr("y1", at).attr("y2", at);
      const text = axis.append("text").attr("x", this.left - 10).attr("y", at).attr("dy", "0.35em");
      text.attr("text-anchor", "end").text(this.format(value, decimals));
    }
    for (const value of this.time ? times : times.filter(Number.isInteger)) {
      const at = this.x(value);
      axis.append("line").attr("class", "tick").attr("x1", at).attr("x2", at);
      axis.select("line:last-of-type").attr("y1", this.bottom).attr("y2", this.bottom + 5);
      const text = axis.append("text").attr("x", at).attr("y", this.bottom + 22).attr("text-anchor", "middle");
      text.text(this.time ? (value % 864e5 === 0 ? day : hour).format(value) : formats.count(value));
    }
    const base = this.data.baseline === null ? NaN : this.y(this.value(this.data.baseline));
    const inside = base >= 10 && base <= this.bottom;
    this.svg.select(".baseline").attr("x1", this.left).attr("x2", this.right);
    this.svg.select(".baseline").attr("visibility", inside ? "visible" : "hidden").attr("y1", base || 0).attr("y2", base || 0);
  }

  drawLines(width) {
    const { positions, curves } = this.data;
    const [first, last] = this.x.domain().map(Number);
    const points = curves.map((curve) =>
      positions.map((at, index) => [this.x(at), this.value(curve.values[index]), at])
        .filter(([, value]) => value !== null)
        .map(([x, value, at]) => [x, this.y(value), at]));
    const line = d3.line();
    // The last point of each line inside the chart; undefined if there is none.
    const ends = points.map((each) => [...each].reverse().find(([, y, at]) => first <= at && at <= last && y >= 6 && y <= this.bottom));
    const labels = spread(ends.map((end) => end?.[1] ?? this.bottom), 23, this.bottom);
    const named = width >= NARROW && this.transform.k === 1;
    this.groups.each((curve, index, nodes) => {
      const group = d3.select(nodes[index]).classed("faded", !this.isShown(index));
      group.select(".line").attr("d", line(points[index]));
      const end = ends[index];
      group.select(".end-marker").attr("d", curve.marker).attr("visibility", end ? "visible" : "hidden");
      if (end) group.select(".end-marker").attr("transform", `translate(${end[0]},${end[1]}) scale(1.25)`);
      group.select(".leader").attr("visibility", named ? "visible" : "hidden");
      group.select("text").attr("visibility", named ? "visible" : "hidden");
      if (end) group.select(".leader").attr("d", line([end, [this.right + 20, labels[index]]]));
      group.select("text").attr("x", this.right + 24).attr("y", labels[index]);
      const reach = (this.right - this.left) / MARKERS_PER_LINE;
      const wanted = curve.dashed ? [] : d3.range(MARKERS_PER_LINE).map((n) => this.left + reach * (n + 0.2 + (0.6 * index) / curves.length));
      const marked = wanted.map((at) => points[index].find(([x]) => x >= at && x < at + reach)).filter(Boolean);
      const drawn = group.select(".markers").selectAll("path").data(marked);
      drawn.exit().remove();
      drawn.enter().append("path").merge(drawn).attr("d", curve.marker).attr("fill", curve.color).attr("transform", ([x, y]) => `translate(${x},${y})`);
      group.selectAll(".annotation").data(curve.annotations).each(([at], n, circles) => {
        const near = points[index].find((point) => point[2] >= at) ?? points[index][points[index].length - 1];
        const seen = first <= near[2] && near[2] <= last;
        d3.select(circles[n]).attr("cx", near[0]).attr("cy", near[1]).attr("visibility", seen ? "visible" : "hidden");
      });
    });
    this.events.attr("transform", ([at, value, x, y]) => `translate(${this.x(at) - x},${this.y(this.value(value)) - y})`)
      .attr("visibility", ([at]) => (first <= at && at <= last ? "visible" : "hidden"));
  }

  // Reads out the position nearest to an x on the chart.
  readNearest(x) {
    const wanted = Number(this.x.invert(x));
    const { positions } = this.data;
    const after = Math.min(d3.bisectLeft(positions, wanted), positions.length - 1);
    const before = Math.max(0, after - 1);
    this.readOut(wanted - positions[before] < positions[after] - wanted ? before : after);
  }

  readOut(index) {
    this.index = index;
    const at = this.data.positions[index];
    const x = this.x(at);
    if (x < this.left - 1 || x > this.right + 1) return this.hideReadout();
    this.cursor.attr("visibility", "visible").attr("x1", x).attr("x2", x).attr("y1", 14).attr("y2", this.bottom);
    const rows = this.data.curves
      .map((curve, place) => ({ curve, place, value: this.value(curve.values[index]) }))
      .filter(({ place, value }) => value !== null && this.isShown(place))
      .sort((a, b) => b.value - a.value)
      .map(({ curve, value }) => element("div", {}, markerIcon(curve), element("span", { textContent: curve.name }), element("b", { textContent: this.format(value) })));
    const head = this.time ? `${moment.format(at)} UTC` : `after ${formats.count(at)}`;
    this.readout.replaceChildren(element("strong", { textContent: head }), ...rows);
    this.readout.hidden = false;
    const wide = this.readout.offsetWidth;
    const right = x + 14 + wide < this.plot.clientWidth;
    this.readout.style.left = `${right ? x + 14 : Math.max(4, x - 14 - wide)}px`;
    return undefined;
  }

  hideReadout() {
    this.index = null;
    this.readout.hidden = true;
    this.cursor.attr("visibility", "hidden");
  }
}

const enhance = (root) => root.querySelectorAll("figure[data-chart]:not(.interactive)").forEach((figure) => new Chart(figure));

// A link with data-section leads to the same page with another version of a section: only the section is replaced.
document.addEventListener("click", async (event) => {
  const link = event.target.closest?.("a[data-section]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
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
