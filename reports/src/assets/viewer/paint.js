// Paints rectangles straight into pixels, which takes a few milliseconds for 100,000 of them, however far one zooms out. A
// rectangle takes at least one pixel, so that nothing vanishes.
const rgbOf = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const mixed = (one, other, share) => one.map((part, at) => Math.round(part + (other[at] - part) * share));
const pixelOf = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;

// Neighbours of one colour differ by a shade.
const SHADES = [0, 0.16, 0.32];
const EDGE = 0.5;
const DIMMED = 0.86;

const classOf = (value, { low, high, count }) =>
  high > low ? Math.min(count - 1, Math.floor((count * (Math.log2(value) - low)) / (high - low))) : 0;
const scaleOf = (values, count) => {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return { low: Math.log2(low), high: Math.log2(high), count };
};

const lifeOf = (model, buffer) => {
  const [from, to] = [model.first[buffer], model.first[buffer + 1] - 1];
  return from > to ? 1 : Math.max(1, model.stepOf(model.end[to]) - model.stepOf(model.start[from]));
};

// The class of every buffer by category, size or life, and what the classes are called.
const classesOf = (model, mode, colors) => {
  const { size, category, categories } = model.buffers;
  const of = new Uint16Array(size.length);
  if (mode === "category") {
    if (category) of.set(category);
    const names = [{ text: "no category", color: colors.none }];
    categories.forEach((text, at) => names.push({ text, color: colors.categories[at] }));
    return { of, names };
  }
  const values = mode === "size" ? size : Float64Array.from(size, (_, buffer) => lifeOf(model, buffer));
  const scale = scaleOf(values, colors.scale.length);
  for (let buffer = 0; buffer < of.length; buffer++) of[buffer] = classOf(values[buffer], scale);
  const from = (at) => 2 ** (scale.low + ((scale.high - scale.low) * at) / scale.count);
  const said = mode === "size" ? (value) => bytesText(Math.round(value)) : model.spanText;
  return { of, names: colors.scale.map((color, at) => ({ text: `${at ? "from " : ""}${said(from(at))}`, color })) };
};

// The colour of every piece, and of its edge.
const tintsOf = (model, classes, found, colors) => {
  const [paper, ink] = [rgbOf(colors.free), rgbOf(colors.ink)];
  const tint = (hex, at, isFound) => {
    const base = mixed(rgbOf(hex), ink, SHADES[at] * 0.6);
    return isFound ? base : mixed(base, paper, DIMMED);
  };
  const table = (change) => classes.names.map(({ color }) =>
    [false, true].map((isFound) => SHADES.map((_, at) => pixelOf(change(tint(color, at, isFound))))));
  const [fills, borders] = [table((color) => color), table((color) => mixed(color, paper, EDGE))];
  const [fill, edge] = [new Uint32Array(model.count), new Uint32Array(model.count)];
  for (let piece = 0; piece < model.count; piece++) {
    const buffer = model.bufferOf(piece);
    const [of, is, shade] = [classes.of[buffer], !found || found[buffer] ? 1 : 0, buffer % SHADES.length];
    fill[piece] = fills[of][is][shade];
    edge[piece] = borders[of][is][shade];
  }
  return { fill, edge };
};

const painter = (model) => {
  let covered = new Uint8Array(0);

  const heldAreas = (pixels, width, height, view, held, color) => {
    const [across, up] = [width / (view.to - view.from), height / (view.high - view.low)];
    for (let at = 0; at < held.low.length; at++) {
      const x0 = Math.max(0, Math.round((held.start[at] - view.from) * across));
      const x1 = Math.min(width, Math.round((held.end[at] - view.from) * across));
      const y0 = Math.max(0, height - Math.round((held.low[at] + held.size[at] - view.low) * up));
      const y1 = Math.min(height, height - Math.round((held.low[at] - view.low) * up));
      for (let y = y0; y < y1 && x0 < x1; y++) pixels.fill(color, y * width + x0, y * width + x1);
    }
  };

  // Free memory that has something above it is a hole; so is all free memory that a framework holds.
  const holes = (pixels, width, height, free, isHeld, hole, hatch) => {
    for (let y = 0; y < height; y++) {
      const row = y * width;
      for (let x = 0; x < width; x++) {
        if (pixels[row + x] !== free) covered[x] = 1;
        else if (isHeld || covered[x]) pixels[row + x] = ((x + y) & 7) < 2 ? hatch : hole;
      }
    }
  };

  // Returns the rectangles that are large enough for a name.
  return (image, view, panel, { fill, edge }, colors, least) => {
    const { width, height } = image;
    const pixels = new Uint32Array(image.data.buffer);
    const [free, outside, hole, hatch] = [colors.free, colors.outside, colors.hole, colors.hatch].map((hex) => pixelOf(rgbOf(hex)));
    if (covered.length < width) covered = new Uint8Array(width);
    covered.fill(0);
    pixels.fill(panel.held ? outside : free);
    if (panel.held) heldAreas(pixels, width, height, view, panel.held, free);
    const { from, to, low: bottom, high: top } = view;
    const [across, up] = [width / (to - from), height / (top - bottom)];
    const { start, end, size, count } = model;
    const { low } = panel;
    const large = [];
    for (let piece = 0; piece < count; piece++) {
      const [s, e, lo] = [start[piece], end[piece], low[piece]];
      const hi = lo + size[piece];
      if (e <= from || s >= to || !(hi > bottom)) continue;
      let x0 = s <= from ? 0 : ((s - from) * across + 0.5) | 0;
      let x1 = e >= to ? width : ((e - from) * across + 0.5) | 0;
      if (x1 <= x0) {
        x1 = Math.min(width, x0 + 1);
        x0 = x1 - 1;
      }
      if (lo >= top) {
        covered.fill(1, x0, x1);
        continue;
      }
      let y0 = hi >= top ? 0 : height - (((hi - bottom) * up + 0.5) | 0);
      const y1 = lo <= bottom ? height : Math.max(1, height - (((lo - bottom) * up + 0.5) | 0));
      if (y1 <= y0) y0 = y1 - 1;
      const [wide, tall, color] = [x1 - x0, y1 - y0, fill[piece]];
      const hasEdge = wide > 3 && tall > 3;
      for (let y = y0; y < y1; y++) {
        const row = y * width;
        if (wide > 12) pixels.fill(color, row + x0, row + x1);
        else for (let x = x0; x < x1; x++) pixels[row + x] = color;
        if (hasEdge) pixels[row + x0] = edge[piece];
      }
      if (!hasEdge) continue;
      pixels.fill(edge[piece], y0 * width + x0, y0 * width + x1);
      if (wide > least.width && tall > least.height && large.length < 150) large.push([piece, x0, y0, wide, tall]);
    }
    if (panel.kind !== "stacked") holes(pixels, width, height, free, Boolean(panel.held), hole, hatch);
    return large;
  };
};
