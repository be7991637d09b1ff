// The map: the load over time, and under it every placement on the same axes.
const LEFT = 78;
const RIGHT = 24;
const CURVE = { top: 20, height: 70 };
const STREAM = { height: 22, pitch: 26 };
const TITLE = 26;
const AXIS = 34;
const PANEL_HEIGHTS = [400, 250, 200];
const FONT = "12px system-ui, 'DejaVu Sans', sans-serif";

// A step of an axis of bytes, a power of two, and the unit of its words.
const bytesAxis = (raw, high) => {
  const each = 2 ** Math.max(0, Math.ceil(Math.log2(raw)));
  const unit = each / 1024 ** unitOf(high) >= 0.25 ? unitOf(high) : unitOf(each);
  const share = each / 1024 ** unit;
  return { each, text: (bytes) => `${(bytes / 1024 ** unit).toFixed(share >= 1 ? 0 : share >= 0.5 ? 1 : 2)} ${UNITS[unit]}` };
};

const linear = (part) => (part <= 10 ? part / 3294 : ((part / 255 + 0.055) / 1.055) ** 2.4);
// Black or white, whichever has the higher contrast by WCAG.
const inkOn = ([red, green, blue]) => (0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue) > 0.179 ? "#000" : "#fff");

const mapOf = (canvas, model) => {
  const context = canvas.getContext("2d", { alpha: false });
  const count = model.panels.length;
  const highest = Math.max(1, model.load.bytes, model.bound || 0, ...model.panels.map((panel) => panel.height));
  // A capacity that is far above everything would leave the map flat.
  const tallest = model.capacity && model.capacity <= 2 * highest ? Math.max(highest, model.capacity) : highest;
  const whole = { from: 0, to: Math.max(1, model.horizon), low: 0, high: tallest * 1.03 };
  const least = { time: Math.min(model.isTimed ? 1000 : 4, whole.to), bytes: Math.min(64, whole.high) };
  // Streams lie above the curve, which makes room for them.
  const lanes = model.streams ? model.streams.names.length : 0;
  const lanesTop = 4;
  const curveTop = CURVE.top + lanes * STREAM.pitch + (lanes > 0 ? 8 : 0);
  const panelHeight = PANEL_HEIGHTS[Math.min(count, PANEL_HEIGHTS.length) - 1];
  const tops = model.panels.map((_, at) => curveTop + CURVE.height + TITLE + at * (panelHeight + TITLE));
  const bottom = tops[count - 1] + panelHeight;
  const paint = painter(model);
  const map = { view: { ...whole }, step: model.load.step, picked: null, hovered: null, event: null, colors: null, tints: null };
  let [width, ratio, waiting, images, bright] = [0, 1, false, [], new Uint8Array(0)];

  const resize = () => {
    ratio = window.devicePixelRatio || 1;
    width = Math.max(200, Math.floor(canvas.clientWidth) - LEFT - RIGHT);
    canvas.style.height = bottom + AXIS + "px";
    canvas.width = Math.round((LEFT + width + RIGHT) * ratio);
    canvas.height = Math.round((bottom + AXIS) * ratio);
    const size = [Math.round(width * ratio), Math.round(panelHeight * ratio)];
    images = model.panels.map(() => context.createImageData(...size));
    map.draw();
  };

  const x = (time) => LEFT + ((time - map.view.from) / (map.view.to - map.view.from)) * width;
  const y = (bytes, at) => tops[at] + panelHeight * (1 - (bytes - map.view.low) / (map.view.high - map.view.low));

  const line = (points, color, dash = [], wide = 1) => {
    context.strokeStyle = color;
    context.lineWidth = wide;
    context.setLineDash(dash);
    context.beginPath();
    points.forEach(([left, top], at) => (at % 2 ? context.lineTo(left, top) : context.moveTo(left, top)));
    context.stroke();
    context.setLineDash([]);
  };
  const say = (text, left, top, color, align = "left") => {
    context.fillStyle = color;
    context.textAlign = align;
    context.fillText(text, left, top);
  };

  const laneTop = (lane) => lanesTop + lane * STREAM.pitch;
  const fitted = (text, room) => (text.length > room ? text.slice(0, Math.max(1, room - 1)) + "\u2026" : text);
  const eventBox = (event) => {
    const { stream, start, end } = model.streams;
    const [left, right] = [Math.max(LEFT - 9, x(start[event])), Math.min(LEFT + width + 9, x(end[event]))];
    return [left, laneTop(stream[event]), Math.max(1, right - left), STREAM.height];
  };
  const inLanes = (act) => {
    context.save();
    context.beginPath();
    context.rect(LEFT, 0, width, laneTop(lanes));
    context.clip();
    act();
    context.restore();
  };
  // Neighbours in a stream alternate between two shades.
  const drawStreams = () => {
    const { view, colors } = map;
    const { names, count, task, start, end } = model.streams;
    names.forEach((name, lane) => {
      context.fillStyle = colors.free;
      context.fillRect(LEFT, laneTop(lane), width, STREAM.height);
      say(name, LEFT - 8, laneTop(lane) + STREAM.height / 2 + 4, colors.ink, "right");
    });
    const shades = model.streams.tasks.map((_, at) => SHADES.slice(0, 2).map((shade) =>
      mixed(rgbOf(colors.categories[model.buffers.categories.length + at]), rgbOf(colors.ink), shade)));
    inLanes(() => {
      for (let event = 0; event < count; event++) {
        if (end[event] < view.from || start[event] > view.to) continue;
        const [left, top, wide, tall] = eventBox(event);
        const color = shades[task[event]][event % 2];
        context.fillStyle = `rgb(${color.join(",")})`;
        context.fillRect(left, top, wide, tall);
        const room = Math.floor((wide - 8) / 7);
        if (room > 3) say(fitted(model.streams.name(event), room), Math.max(LEFT, left) + 4, top + tall / 2 + 4, inkOn(color));
      }
    });
  };
  // The event under the pointer, and with dashes those that it waits for.
  const outlineEvents = () => {
    if (map.event === null) return;
    const { after, room, started } = model.streams.waits(map.event);
    inLanes(() => {
      for (const event of [...after, ...room, ...started, map.event]) {
        context.strokeStyle = map.colors.ink;
        context.lineWidth = 2;
        context.setLineDash(event === map.event ? [] : [4, 3]);
        context.strokeRect(...eventBox(event));
      }
      context.setLineDash([]);
    });
  };

  // The most and the least bytes in use in each column of pixels.
  const drawCurve = () => {
    const { at, bytes } = model.curve;
    const { view, colors } = map;
    const level = (value) => curveTop + CURVE.height * (1 - value / (model.load.bytes * 1.06 || 1));
    const floor = curveTop + CURVE.height;
    const each = (view.to - view.from) / width;
    let point = Math.max(0, pointAt(at, view.from));
    context.beginPath();
    context.moveTo(LEFT, floor);
    for (let column = 0; column < width; column++) {
      const until = view.from + (column + 1) * each;
      let most = point < bytes.length ? bytes[point] : 0;
      while (point + 1 < at.length && at[point + 1] < until) most = Math.max(most, bytes[++point]);
      context.lineTo(LEFT + column, level(most));
      context.lineTo(LEFT + column + 1, level(most));
    }
    context.lineTo(LEFT + width, floor);
    context.closePath();
    context.globalAlpha = 0.28;
    context.fillStyle = colors.none;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = colors.none;
    context.lineWidth = 1;
    context.stroke();
    line([[LEFT, level(model.load.bytes)], [LEFT + width, level(model.load.bytes)]], colors.ink, [6, 4]);
    say(`bytes in use; ${model.loadWord} ${bytesText(model.load.bytes)} at ${model.momentText(model.load.step)}`, LEFT, curveTop - 7, colors.ink);
    say("0", LEFT - 8, floor, colors.ink, "right");
    say(bytesText(model.load.bytes), LEFT - 8, level(model.load.bytes) + 4, colors.ink, "right");
  };

  const titleOf = (panel) => {
    const over = model.load.bytes > 0 ? panel.height / model.load.bytes - 1 : 0;
    if (panel.kind === "stacked") return `${panel.name}: ${bytesText(panel.height)}`;
    const reach = panel.kind === "own" ? "addresses up to" : "height";
    return `${panel.name}: ${reach} ${bytesText(panel.height)}${over > 0 ? `, ${shareText(over)} above the ${model.loadWord}` : `, the ${model.loadWord}`}`;
  };

  // Horizontal lines at bytes, with their words inside of the right edge.
  const drawLevels = (panel, at) => {
    const { view, colors } = map;
    const levels = [[model.load.bytes, model.loadWord, colors.ink, [6, 4]]];
    if (model.bound && model.bound > model.load.bytes) levels.push([model.bound, "bound", colors.ink, [2, 3]]);
    if (model.capacity) levels.push([model.capacity, "capacity", colors.ink, [10, 3, 2, 3]]);
    if (panel.kind !== "stacked") levels.push([panel.height, "height", colors.height, []]);
    let said = Infinity;
    for (const [bytes, , color, dash] of levels) {
      if (bytes >= view.low && bytes <= view.high) line([[LEFT, y(bytes, at)], [LEFT + width, y(bytes, at)]], color, dash, 1.5);
    }
    for (const [bytes, text, color] of levels.reverse()) {
      const top = y(bytes, at);
      if (top < tops[at] || top > tops[at] + panelHeight || Math.abs(top - said) < 16) continue;
      said = top;
      const wide = context.measureText(text).width;
      const under = top + 15 > tops[at] + panelHeight ? top - 17 : top + 1;
      context.fillStyle = colors.paper;
      context.fillRect(LEFT + width - wide - 9, under, wide + 8, 15);
      say(text, LEFT + width - 5, under + 12, color, "right");
    }
    for (const border of panel.borders) {
      if (border > view.low && border < view.high) line([[LEFT, y(border, at)], [LEFT + width, y(border, at)]], colors.ink, [1, 4]);
    }
  };

  const drawNames = (large, at) => {
    for (const [piece, left, top, wide, tall] of large) {
      const color = [0, 8, 16].map((shift) => (map.tints.fill[piece] >> shift) & 255);
      const room = Math.floor((wide / ratio - 8) / 7);
      const text = fitted(model.name(model.bufferOf(piece)), room);
      say(text, LEFT + left / ratio + 4, tops[at] + (top + tall / 2) / ratio + 4, inkOn(color));
    }
  };

  const outline = (buffer, color, wide) => {
    if (buffer === null) return;
    const { view } = map;
    model.panels.forEach((panel, at) => {
      context.save();
      context.beginPath();
      context.rect(LEFT, tops[at], width, panelHeight);
      context.clip();
      for (let piece = model.first[buffer]; piece < model.first[buffer + 1]; piece++) {
        const [start, end, low] = [model.start[piece], model.end[piece], panel.low[piece]];
        if (!(low < view.high) || low + model.size[piece] <= view.low || end <= view.from || start >= view.to) continue;
        // What reaches far outside would make the browser's lines coarse.
        const [left, right] = [Math.max(LEFT - 9, x(start)), Math.min(LEFT + width + 9, x(end))];
        const [top, under] = [Math.max(tops[at] - 9, y(low + model.size[piece], at)), Math.min(tops[at] + panelHeight + 9, y(low, at))];
        for (const [ink, size] of [[map.colors.paper, wide + 3], [color, wide]]) {
          context.strokeStyle = ink;
          context.lineWidth = size;
          context.strokeRect(left, top, Math.max(2, right - left), Math.max(2, under - top));
        }
      }
      context.restore();
    });
  };

  const drawAxes = () => {
    const { view, colors } = map;
    const wide = Math.max(110, context.measureText(model.stepText(view.to)).width + 40);
    const step = Math.max(1, roundStep(((view.to - view.from) / width) * wide));
    for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
      line([[x(time), bottom], [x(time), bottom + 5]], colors.ink);
      const text = model.isTimed ? tickText(time, step, whole.to) : model.stepText(time);
      const half = context.measureText(text).width / 2;
      // Long steps stay right of the word for them, and inside of the canvas.
      const middle = Math.min(LEFT + width + RIGHT - half, Math.max(LEFT + half, x(time)));
      say(text, middle, bottom + 18, colors.ink, "center");
    }
    say(model.isTimed ? "time" : "step", LEFT - 8, bottom + 18, colors.ink, "right");
    const { each, text } = bytesAxis(((view.high - view.low) / panelHeight) * 40, view.high);
    model.panels.forEach((panel, at) => {
      for (let bytes = Math.ceil(view.low / each) * each; bytes <= view.high; bytes += each) {
        line([[LEFT - 4, y(bytes, at)], [LEFT, y(bytes, at)]], colors.ink);
        say(text(bytes), LEFT - 8, y(bytes, at) + 4, colors.ink, "right");
      }
    });
  };

  const guide = (time, color, dash, wide) => {
    const at = x(time + 0.5);
    if (at < LEFT || at > LEFT + width) return;
    line([[at, curveTop], [at, curveTop + CURVE.height], ...tops.flatMap((top) => [[at, top], [at, top + panelHeight]])], color, dash, wide);
  };

  const paintAll = () => {
    waiting = false;
    const { view, colors, tints } = map;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.fillStyle = colors.paper;
    context.fillRect(0, 0, LEFT + width + RIGHT, bottom + AXIS);
    if (model.streams) drawStreams();
    drawCurve();
    model.panels.forEach((panel, at) => {
      const large = paint(images[at], view, panel, tints, colors, { width: 60 * ratio, height: 15 * ratio });
      context.putImageData(images[at], Math.round(LEFT * ratio), Math.round(tops[at] * ratio));
      drawNames(large, at);
      drawLevels(panel, at);
      say(titleOf(panel), LEFT, tops[at] - 8, colors.ink);
    });
    guide(model.load.step, colors.ink, [6, 4], 1);
    if (map.step !== model.load.step) guide(map.step, colors.height, [], 1);
    outline(map.hovered, colors.ink, 1);
    outline(map.picked, colors.height, 2);
    outlineEvents();
    drawAxes();
    canvas.dispatchEvent(new Event("painted"));
  };
  map.paint = paintAll;
  map.draw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(paintAll);
  };

  const clamped = (from, span, low, high) => Math.min(high - span, Math.max(low, from));
  map.show = (from, time, low, bytes) => {
    const wide = Math.min(whole.to, Math.max(least.time, time));
    const tall = Math.min(whole.high, Math.max(least.bytes, bytes));
    const [left, under] = [clamped(from, wide, 0, whole.to), clamped(low, tall, 0, whole.high)];
    map.view = { from: left, to: left + wide, low: under, high: under + tall };
    map.draw();
    if (map.moved) map.moved(map.view);
  };
  // The same time as another map on the same axis.
  map.follow = ({ from, to }) => {
    map.view = { ...map.view, from, to };
    map.draw();
  };
  map.isWhole = () => map.view.to - map.view.from >= whole.to && map.view.high - map.view.low >= whole.high;
  map.all = () => map.show(0, whole.to, 0, whole.high);
  // Factors of the spans of time and addresses; the shares say which point of the view stays where it is.
  map.zoom = (time, bytes, across = 0.5, up = 0.5) => {
    const { from, to, low, high } = map.view;
    map.show(from + (to - from) * across * (1 - time), (to - from) * time, low + (high - low) * up * (1 - bytes), (high - low) * bytes);
  };
  map.pan = (across, up) => {
    const { from, to, low, high } = map.view;
    map.show(from + (to - from) * across, to - from, low + (high - low) * up, high - low);
  };
  map.spans = () => ({ time: (map.view.to - map.view.from) / width, bytes: (map.view.high - map.view.low) / panelHeight });

  // Where a pixel of the canvas lies: a panel and shares of its view.
  map.place = (left, top) => {
    const at = tops.findIndex((edge) => top >= edge && top < edge + panelHeight);
    const across = Math.min(1, Math.max(0, (left - LEFT) / width));
    return { at, across, up: at < 0 ? 0.5 : 1 - (top - tops[at]) / panelHeight, isInside: at >= 0 && left >= LEFT && left < LEFT + width };
  };
  // The event at a pixel of the canvas, or the one within two pixels of it.
  map.eventAt = (left, top) => {
    const lane = Math.floor((top - lanesTop) / STREAM.pitch);
    if (lane < 0 || lane >= lanes || left < LEFT || left >= LEFT + width) return null;
    const { stream, start, end, count } = model.streams;
    const time = map.view.from + ((left - LEFT) / width) * (map.view.to - map.view.from);
    const near = map.spans().time * 2;
    let close = null;
    for (let event = 0; event < count; event++) {
      if (stream[event] !== lane || start[event] > time + near || end[event] < time - near) continue;
      if (start[event] <= time && time < end[event]) return event;
      if (close === null) close = event;
    }
    return close;
  };
  // The buffer at a place, or the one within two pixels of it.
  map.bufferAt = ({ at, across, up, isInside }) => {
    if (!isInside) return null;
    const [time, bytes] = [map.view.from + (map.view.to - map.view.from) * across, map.view.low + (map.view.high - map.view.low) * up];
    const near = { time: map.spans().time * 2, bytes: map.spans().bytes * 2 };
    const { low } = model.panels[at];
    let close = null;
    for (let piece = model.count - 1; piece >= 0; piece--) {
      const [start, end, from] = [model.start[piece], model.end[piece], low[piece]];
      const to = from + model.size[piece];
      if (start > time + near.time || end < time - near.time || from > bytes + near.bytes || !(to >= bytes - near.bytes)) continue;
      if (start <= time && time < end && from <= bytes && bytes < to) return model.bufferOf(piece);
      if (close === null) close = model.bufferOf(piece);
    }
    return close;
  };
  map.isInView = (buffer) => {
    const { from, to, low, high } = map.view;
    for (let piece = model.first[buffer]; piece < model.first[buffer + 1]; piece++) {
      if (model.end[piece] <= from || model.start[piece] >= to) continue;
      if (model.panels.some((panel) => panel.low[piece] < high && panel.low[piece] + model.size[piece] > low)) return true;
    }
    return false;
  };
  // Moves the view to a buffer that lies outside.
  map.reveal = (buffer) => {
    const piece = model.first[buffer];
    if (map.isInView(buffer) || piece >= model.first[buffer + 1]) return map.draw();
    const { from, to, low, high } = map.view;
    const place = model.panels.map((panel) => panel.low[piece]).find((bytes) => bytes >= 0) || 0;
    const [time, bytes] = [(model.start[piece] + model.end[piece]) / 2, place + model.size[piece] / 2];
    map.show(time - (to - from) / 2, to - from, bytes - (high - low) / 2, high - low);
  };
  // The whole height at some steps around one.
  map.lookAt = (step) => {
    const span = Math.min(map.view.to - map.view.from, Math.max(40, whole.to / 8));
    map.show(step + 0.5 - span / 2, span, 0, whole.high);
  };
  map.resize = resize;
  return map;
};
