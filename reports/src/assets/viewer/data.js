// Reads the data in the page: packed numbers, and what follows from them.
const KINDS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f64: Float64Array };

const bytesOf = (text) => {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
  return bytes;
};

const unpack = (packed) => {
  if (!packed) return null;
  const bytes = bytesOf(packed.data);
  const values = new KINDS[packed.type](bytes.buffer, bytes.byteOffset, bytes.byteLength / KINDS[packed.type].BYTES_PER_ELEMENT);
  if (packed.unit === 1) return values;
  const scaled = new Float64Array(values.length);
  for (let at = 0; at < values.length; at++) scaled[at] = values[at] * packed.unit;
  return scaled;
};

const unpacked = (group) => Object.fromEntries(Object.entries(group).map(([name, packed]) => [name, unpack(packed)]));

// The first place in a sorted array whose value is greater than `value`.
const after = (sorted, value) => {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
};

// The first point of a curve at a step, or else the last one before it; -1 without such a point.
const pointAt = (at, step) => {
  let point = after(at, step) - 1;
  while (point > 0 && at[point - 1] === step) point--;
  return point;
};

// Bytes in use from each step at which they change, counted like the load.
const curveOf = ({ counted, end, size, count }) => {
  const steps = new Float64Array(2 * count);
  steps.set(counted);
  steps.set(end, count);
  steps.sort();
  let distinct = 0;
  for (const step of steps) if (distinct === 0 || steps[distinct - 1] !== step) steps[distinct++] = step;
  const at = steps.slice(0, distinct);
  const bytes = new Float64Array(distinct);
  for (let piece = 0; piece < count; piece++) {
    bytes[after(at, counted[piece]) - 1] += size[piece];
    bytes[after(at, end[piece]) - 1] -= size[piece];
  }
  for (let point = 1; point < distinct; point++) bytes[point] += bytes[point - 1];
  return { at, bytes };
};

// The events of a schedule; each awaits at most one of each stream.
const streamsOf = ({ names, tasks, ...packed }, eventNames) => {
  const events = unpacked(packed);
  const awaited = (list, width, event) => Array.from(list.subarray(width * event, width * (event + 1)), (number) => number - 1).filter((at) => at >= 0);
  return {
    names, tasks, ...events,
    count: events.start.length,
    name: (event) => eventNames[event],
    waits: (event) => ({ after: awaited(events.after, 3, event), room: awaited(events.room, 3, event), started: awaited(events.with, 1, event) }),
  };
};

const modelOf = (script) => {
  const data = JSON.parse(script.textContent);
  const pieces = unpacked(data.pieces);
  // A buffer that may overwrite another counts from its second step.
  pieces.counted = pieces.counted || pieces.start;
  const count = pieces.start.length;
  const { names, categories, ops, stacks, frames, ...packed } = data.buffers;
  const buffers = { names, categories, ops, stacks, frames, ...unpacked(packed) };
  const bufferOf = pieces.of ? (piece) => pieces.of[piece] : (piece) => piece;
  // Pieces of a buffer follow each other.
  const first = new Uint32Array(buffers.size.length + 1).fill(count);
  for (let piece = count - 1; piece >= 0; piece--) first[bufferOf(piece)] = piece;
  for (let buffer = buffers.size.length - 1; buffer >= 0; buffer--) first[buffer] = Math.min(first[buffer], first[buffer + 1]);
  const panels = data.panels.map((panel) => {
    const low = unpack(panel.low);
    const places = panel.absent.length > 0 ? Float64Array.from(low) : low;
    for (const piece of panel.absent) places[piece] = NaN;
    return { ...panel, low: places, held: panel.held && unpacked(panel.held) };
  });
  const model = { ...data, ...pieces, pieces: undefined, count, bufferOf, first, buffers, panels };
  model.streams = data.streams && streamsOf(data.streams, ops);
  // Steps may be nanoseconds.
  model.isTimed = data.clock === "ns";
  model.loadWord = model.isTimed ? "peak" : "load";
  // A schedule may take bytes for no time: its curve then has several points at one time.
  model.curve = data.curve ? unpacked(data.curve) : curveOf(model);
  model.name = (buffer) => (names ? names[buffer] : String(buffer));
  model.category = (buffer) => (buffers.category && buffers.category[buffer] ? categories[buffers.category[buffer] - 1] : "");
  model.op = (buffer) => (buffers.op && buffers.op[buffer] ? ops[buffers.op[buffer] - 1] : "");
  model.stack = (buffer) => (buffers.stack && buffers.stack[buffer] ? stacks[buffers.stack[buffer] - 1].map((frame) => frames[frame]) : []);
  model.inUse = (step) => {
    const { at, bytes } = model.curve;
    let point = pointAt(at, step);
    let most = point < 0 ? 0 : bytes[point];
    while (at[point + 1] === step) most = Math.max(most, bytes[++point]);
    return most;
  };
  // The steps of the file, where they were replaced by ranks: what is drawn is ranked, what is said never is.
  let origins = null;
  const original = () => {
    const known = new Map();
    for (let buffer = 0; buffer < buffers.size.length; buffer++) {
      const [from, to] = [first[buffer], first[buffer + 1] - 1];
      if (from > to) continue;
      known.set(pieces.start[from], (buffers.from || pieces.start)[buffers.from ? buffer : from]);
      known.set(pieces.end[to], (buffers.to || pieces.end)[buffers.to ? buffer : to]);
    }
    const ranks = Float64Array.from(known.keys()).sort();
    return { ranks, steps: ranks.map((rank) => known.get(rank)) };
  };
  model.stepOf = (rank) => {
    if (!buffers.from && !buffers.to) return rank;
    origins = origins || original();
    const at = after(origins.ranks, rank) - 1;
    return at < 0 ? rank : origins.steps[at];
  };
  model.stepText = (step) => (model.isTimed ? timeText(step) : countText(model.stepOf(step)));
  model.momentText = (step) => (model.isTimed ? "" : "step ") + model.stepText(step);
  model.spanText = (steps) => (model.isTimed ? timeText(steps) : countText(Math.round(steps)) + " steps");
  return model;
};

// The buffers in which a text occurs; `null` for no text.
const matchesOf = (model, text) => {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return null;
  const { buffers } = model;
  const has = (word) => word.toLowerCase().includes(wanted);
  const numbers = (words) => Uint8Array.from([0, ...words.map((word) => (has(word) ? 1 : 0))]);
  const [categories, ops] = [numbers(buffers.categories), numbers(buffers.ops)];
  const frames = buffers.frames.map(has);
  const stacks = Uint8Array.from([0, ...buffers.stacks.map((stack) => (stack.some((frame) => frames[frame]) ? 1 : 0))]);
  const found = new Uint8Array(buffers.size.length);
  for (let buffer = 0; buffer < found.length; buffer++) {
    const is = (buffers.category && categories[buffers.category[buffer]]) || (buffers.op && ops[buffers.op[buffer]])
      || (buffers.stack && stacks[buffers.stack[buffer]]) || has(model.name(buffer));
    found[buffer] = is ? 1 : 0;
  }
  return found;
};

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const unitOf = (bytes) => Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
// Halves go to the even digit, as in the tables of the page.
const fixed = (value, digits) => {
  const scaled = value * 10 ** digits;
  const rounded = Math.round(scaled);
  return ((scaled % 1 === 0.5 && rounded % 2 === 1 ? rounded - 1 : rounded) / 10 ** digits).toFixed(digits);
};
const bytesText = (bytes) => {
  const unit = unitOf(bytes);
  if (unit === 0) return bytes + " B";
  const value = bytes / 1024 ** unit;
  return fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0) + " " + UNITS[unit];
};
const countText = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
const exactText = (bytes) => (bytes < 1024 ? bytes + " B" : `${bytesText(bytes)} (${countText(bytes)} bytes)`);
const shareText = (share) => (share > 0.9995 && share < 1.0005 ? "100" : (share * 100).toFixed(share < 0.0995 ? 2 : 1)) + " %";
