// Pointer, keys, search, the slider, and what is said of buffers in words.
const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

// What an event waits for, each as a word and names.
const waitFacts = (streams, event) => {
  const { after, room, started } = streams.waits(event);
  const facts = [["waits for", after], ["waits for its addresses until the end of", room], ["waits for the start of", started]];
  return facts.filter(([, events]) => events.length > 0).map(([word, events]) => [word, events.map(streams.name).join(", ")]);
};
const eventFacts = ({ streams }, event) => {
  const { stream, start, end, bytes } = streams;
  const isFirst = event === 0 || stream[event - 1] !== stream[event];
  const idle = start[event] - (isFirst ? 0 : end[event - 1]);
  const facts = [["name", streams.name(event)], ["stream", streams.names[stream[event]]], ["bytes", exactText(bytes[event])]];
  facts.push(["time", `from ${timeText(start[event])} to ${timeText(end[event])}, ${timeText(end[event] - start[event])}`]);
  if (idle > 0) facts.push(["stream idle before it", timeText(idle)]);
  return facts.concat(waitFacts(streams, event));
};

const factsOf = (model, buffer) => {
  const { size, requested } = model.buffers;
  const [from, to] = [model.first[buffer], model.first[buffer + 1] - 1];
  const facts = [["name", model.name(buffer)], ["category", model.category(buffer)], [model.isTimed ? "written by" : "operation", model.op(buffer)], ["size", exactText(size[buffer])]];
  if (requested && requested[buffer] !== size[buffer]) facts.push(["requested", exactText(requested[buffer])]);
  if (from <= to) facts.push(["life", `from ${model.momentText(model.start[from])} to ${model.stepText(model.end[to])}`]);
  for (const panel of model.panels) {
    const low = from <= to ? panel.low[from] : NaN;
    facts.push([`offset, ${panel.name}`, Number.isNaN(low) ? "not said" : exactText(low)]);
  }
  const writer = model.streams ? model.buffers.writer[buffer] : 0;
  if (writer > 0) facts.push(...waitFacts(model.streams, writer - 1).map(([word, names]) => [`${model.op(buffer)} ${word}`, names]));
  return facts.filter(([, text]) => text !== "");
};

const LIVE = 8;

const liveAt = (model, step) => {
  const live = [];
  for (let piece = 0; piece < model.count; piece++) if (model.counted[piece] <= step && step < Math.max(model.end[piece], model.counted[piece] + 1)) live.push(piece);
  live.sort((one, other) => model.size[other] - model.size[one] || one - other);
  return live;
};

// The maps of one page whose steps are times have one axis.
const timed = [];

for (const figure of document.querySelectorAll("figure.viewer")) {
  const model = modelOf(figure.querySelector("script.data"));
  const canvas = figure.querySelector("canvas");
  const map = mapOf(canvas, model);
  const [tip, slider, live, picked, found] = [".tip", ".step input", "ol.live", ".picked div", ".found"].map((at) => figure.querySelector(at));
  const control = (name) => figure.querySelector(`[data-do="${name}"]`);
  const [mode, find] = [control("color"), control("find")];
  let [matches, order] = [null, null];
  // All buffers by their first step.
  const ordered = () => {
    const start = (buffer) => model.start[model.first[buffer]];
    order = order || Uint32Array.from(model.buffers.size, (_, buffer) => buffer).sort((one, other) => start(one) - start(other) || one - other);
    return order;
  };

  const theme = window.matchMedia("(prefers-color-scheme: dark)");
  let isPrinted = false;
  const key = (text, color, style = "") => {
    const item = element("li");
    const swatch = element("i", undefined, { class: style });
    if (style.startsWith("line")) swatch.style.borderTopColor = color;
    else if (style === "") swatch.style.background = color;
    item.append(swatch);
    return [item, text];
  };
  // The tasks of the streams that there are.
  const taskItems = (colors) => {
    if (!model.streams) return [];
    const of = model.buffers.categories.length;
    const used = model.streams.tasks.map((text, at) => (model.streams.task.includes(at) ? [key(text, colors.categories[of + at])] : [])).flat();
    const [streams, memory] = [[element("li", "streams:"), ""], [element("li", "memory:"), ""]];
    for (const [item, text] of used) item.append(element("span", text));
    return [streams, ...used, memory];
  };
  const legend = (classes, colors) => {
    const used = new Uint32Array(classes.names.length);
    for (const of of classes.of) used[of]++;
    const items = classes.names.flatMap(({ text, color }, at) => (used[at] ? [key(text, color)] : []));
    for (const [item, text] of items) {
      const isWord = mode.value === "category" && text !== "no category";
      const name = isWord ? element("button", text, { type: "button", title: "find these" }) : element("span", text);
      if (isWord) name.addEventListener("click", () => search(find.value === text ? "" : text));
      item.append(name);
    }
    const isHeld = model.panels.some((panel) => panel.held);
    const rest = [
      ...(isHeld ? [key("not held", colors.outside)] : [key("free", colors.free)]),
      key(isHeld ? "free below a buffer, or held and not in use" : "free below a buffer", "", "hatched"),
      key("height", colors.height, "line"),
      key(model.isTimed ? "peak" : "load, peak step", colors.ink, "line dashed"),
    ];
    for (const [item, text] of rest) item.append(element("span", text));
    for (const [item] of rest.slice(0, 1)) item.firstChild.style.outline = `1px solid ${colors.ink}`;
    figure.querySelector(".keys").replaceChildren(...[...taskItems(colors), ...items, ...rest].map(([item]) => item));
  };
  const recolor = () => {
    map.colors = model.colors[theme.matches && !isPrinted ? "dark" : "light"];
    figure.style.setProperty("--hole", map.colors.hole);
    figure.style.setProperty("--hatch", map.colors.hatch);
    const classes = classesOf(model, mode.value, map.colors);
    map.tints = tintsOf(model, classes, matches, map.colors);
    legend(classes, map.colors);
    map.draw();
  };

  const pick = (buffer) => {
    map.picked = buffer;
    if (buffer === null) {
      picked.replaceChildren(element("p", "None. Click one, or press Enter on the map."));
      map.draw();
      return;
    }
    const list = element("dl", undefined, { class: "facts" });
    for (const [name, text] of factsOf(model, buffer)) list.append(element("dt", name), element("dd", text));
    const stack = element("ol");
    for (const frame of model.stack(buffer)) stack.append(element("li", frame));
    picked.replaceChildren(list, ...(stack.firstChild ? [element("h3", "Call stack, innermost first"), stack] : []));
    map.reveal(buffer);
  };
  const setStep = (step) => {
    map.step = step;
    slider.value = step;
    const used = model.inUse(step);
    const pieces = liveAt(model, step);
    const share = model.load.bytes > 0 ? `, ${shareText(used / model.load.bytes)} of the ${model.loadWord}` : "";
    const text = `${model.stepText(step)}: ${bytesText(used)} in use by ${countText(pieces.length)} buffers${share}`;
    figure.querySelector(".step output").textContent = text;
    slider.setAttribute("aria-valuetext", text);
    live.replaceChildren(...pieces.slice(0, LIVE).map((piece) => {
      const buffer = model.bufferOf(piece);
      const category = model.category(buffer);
      const button = element("button", `${model.name(buffer)}, ${bytesText(model.size[piece])}${category ? `, ${category}` : ""}`, { type: "button" });
      button.addEventListener("click", () => pick(buffer));
      const item = element("li");
      item.append(button);
      return item;
    }));
    map.draw();
  };

  const search = (text) => {
    find.value = text;
    matches = matchesOf(model, text);
    let [count, bytes] = [0, 0];
    if (matches) matches.forEach((is, buffer) => { if (is) { count++; bytes += model.buffers.size[buffer]; } });
    found.textContent = matches ? `${countText(count)} buffers, ${bytesText(bytes)}` : "";
    recolor();
  };
  // The next buffer by start, of those that match or are in view.
  const next = (direction, isWanted) => {
    const order = ordered();
    const at = map.picked === null ? (direction > 0 ? -1 : order.length) : order.indexOf(map.picked);
    for (let to = at + direction; to >= 0 && to < order.length; to += direction) {
      if ((!matches || matches[order[to]]) && isWanted(order[to])) return order[to];
    }
    return null;
  };
  const nextMatch = (direction) => {
    if (!matches) return;
    const buffer = next(direction, () => true);
    if (buffer !== null) pick(buffer);
  };

  const acts = {
    in: () => map.zoom(0.5, 0.5), out: () => map.zoom(2, 2), all: map.all,
    peak: () => { setStep(model.load.step); map.lookAt(model.load.step); },
    top: (button) => {
      const { step } = model.panels[Number(button.dataset.panel)];
      setStep(step);
      map.lookAt(step);
    },
    previous: () => nextMatch(-1), next: () => nextMatch(1),
  };
  for (const button of figure.querySelectorAll("button[data-do]")) button.addEventListener("click", () => acts[button.dataset.do](button));
  find.addEventListener("input", () => search(find.value));
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") search("");
  });
  slider.addEventListener("input", () => setStep(Number(slider.value)));
  for (const [value, text] of [["category", "category"], ["size", "size"], ["life", "length of life"]]) {
    if (value !== "category" || model.buffers.category) mode.append(element("option", text, { value }));
  }
  // Categories that few bytes have say little.
  if (model.buffers.category) {
    let [all, named] = [0, 0];
    model.buffers.size.forEach((bytes, buffer) => { all += bytes; named += model.buffers.category[buffer] ? bytes : 0; });
    mode.value = 2 * named >= all ? "category" : "size";
  }
  mode.addEventListener("change", recolor);
  theme.addEventListener("change", recolor);
  // Paper is light. A browser prints what the canvas holds when the event ends, so it is painted at once.
  for (const [event, is] of [["beforeprint", true], ["afterprint", false]]) {
    window.addEventListener(event, () => {
      isPrinted = is;
      recolor();
      map.paint();
    });
  }

  const keys = {
    "+": acts.in, "=": acts.in, "-": acts.out, "0": map.all, p: acts.peak, P: acts.peak,
    ArrowLeft: () => map.pan(-0.15, 0), ArrowRight: () => map.pan(0.15, 0), ArrowUp: () => map.pan(0, 0.15), ArrowDown: () => map.pan(0, -0.15),
    Home: () => map.pan(-1e9, 0), End: () => map.pan(1e9, 0),
    Enter: () => { const buffer = next(1, map.isInView); if (map.picked === null && buffer !== null) pick(buffer); },
  };
  const shifted = {
    ArrowLeft: () => map.zoom(1.5, 1), ArrowRight: () => map.zoom(1 / 1.5, 1), ArrowUp: () => map.zoom(1, 1 / 1.5), ArrowDown: () => map.zoom(1, 1.5),
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Tab" || event.key === "Escape") {
      if (map.picked === null) return;
      const buffer = event.key === "Tab" ? next(event.shiftKey ? -1 : 1, map.isInView) : null;
      pick(buffer);
      // Past the last one the focus leaves the map.
      if (buffer !== null || event.key === "Escape") event.preventDefault();
      return;
    }
    const act = (event.shiftKey && shifted[event.key]) || keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return map.place(event.clientX - box.left, event.clientY - box.top);
  };
  canvas.addEventListener("wheel", (event) => {
    const turn = event.deltaY || event.deltaX;
    // All in view: the page scrolls on.
    if (event.ctrlKey || (turn > 0 && map.isWhole())) return;
    event.preventDefault();
    if (!event.shiftKey && Math.abs(event.deltaX) > Math.abs(event.deltaY)) return map.pan(event.deltaX / 1000, 0);
    const factor = turn < 0 ? 1 / 1.3 : 1.3;
    const { across, up } = at(event);
    map.zoom(event.altKey ? 1 : factor, event.shiftKey ? 1 : factor, across, up);
  }, { passive: false });

  let grip = null;
  const point = (buffer, task) => {
    if (buffer === map.hovered && task === map.event) return;
    [map.hovered, map.event] = [buffer, task];
    map.draw();
  };
  const hover = (event) => {
    const box = canvas.getBoundingClientRect();
    const [left, top] = [event.clientX - box.left, event.clientY - box.top];
    const task = map.eventAt(left, top);
    const buffer = task === null ? map.bufferAt(at(event)) : null;
    point(buffer, task);
    tip.hidden = buffer === null && task === null;
    if (tip.hidden) return;
    const [facts, stack] = task === null ? [factsOf(model, buffer), model.stack(buffer).slice(0, 3)] : [eventFacts(model, task), []];
    tip.textContent = facts.map(([name, text]) => (name === "name" ? text : `${name}: ${text}`)).concat(stack).join("\n");
    tip.style.left = (left > box.width / 2 ? Math.max(0, left - tip.offsetWidth - 12) : left + 14) + "px";
    tip.style.top = Math.min(top + 14, box.height - tip.offsetHeight) + "px";
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    grip = { x: event.clientX, y: event.clientY, view: map.view, spans: map.spans(), moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!grip) return hover(event);
    const [right, down] = [event.clientX - grip.x, event.clientY - grip.y];
    if (!grip.moved && Math.abs(right) + Math.abs(down) < 4) return;
    grip.moved = true;
    tip.hidden = true;
    canvas.classList.add("moved");
    const { from, to, low, high } = grip.view;
    map.show(from - right * grip.spans.time, to - from, low + down * grip.spans.bytes, high - low);
  });
  const release = (event) => {
    if (grip && !grip.moved && event.type === "pointerup") pick(map.bufferAt(at(event)));
    grip = null;
    canvas.classList.remove("moved");
  };
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, release);
  canvas.addEventListener("pointerleave", () => {
    tip.hidden = true;
    point(null, null);
  });

  if (model.isTimed) {
    timed.push(map);
    map.moved = (view) => timed.forEach((other) => { if (other !== map) other.follow(view); });
  }
  pick(null);
  recolor();
  setStep(model.load.step);
  map.resize();
  new ResizeObserver(() => { if (Math.floor(canvas.clientWidth) !== Math.floor(canvas.width / (window.devicePixelRatio || 1))) map.resize(); }).observe(canvas);
  canvas.addEventListener("painted", () => { figure.dataset.ready = performance.now().toFixed(0); }, { once: true });
}
