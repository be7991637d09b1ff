// Zooms the time axis of a timeline: wheel, buttons, keys and dragging. The picture is whole without it.
for (const figure of document.querySelectorAll("figure.timeline")) {
  const WHOLE = 1e6;
  const total = Number(figure.dataset.ns);
  const outer = figure.querySelector("svg");
  const view = figure.querySelector("svg.view");
  const ticks = figure.querySelector("g.ticks");
  const inner = view.viewBox.baseVal.height;
  const [left, width] = [Number(ticks.dataset.left), Number(ticks.dataset.width)];
  const bottom = Number(ticks.dataset.bottom);
  const least = Math.max(10, (WHOLE * 1000) / total);
  let [start, span] = [0, WHOLE];
  let waiting = false;

  const element = (name, attributes, text) => {
    const made = document.createElementNS(outer.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const paint = () => {
    waiting = false;
    view.setAttribute("viewBox", `${start} 0 ${span} ${inner}`);
    const [from, wide] = [(start / WHOLE) * total, (span / WHOLE) * total];
    const step = roundStep(wide / 8);
    const marks = [];
    for (let at = Math.ceil(from / step - 1e-9) * step; at <= from + wide * (1 + 1e-9); at += step) {
      const x = left + ((at - from) / wide) * width;
      marks.push(element("path", { d: `M${x} ${bottom}v5`, fill: "none", class: "ink-muted-stroke" }));
      marks.push(element("text", { x, y: bottom + 20, "text-anchor": "middle", class: "ink-text-fill" }, tickText(at, step, total)));
    }
    ticks.replaceChildren(...marks);
  };
  const show = (from, wide) => {
    span = Math.min(WHOLE, Math.max(least, wide));
    start = Math.min(WHOLE - span, Math.max(0, from));
    if (!waiting) {
      waiting = true;
      requestAnimationFrame(paint);
    }
  };
  const zoom = (factor, share = 0.5) => show(start + span * share * (1 - factor), span * factor);
  const pan = (share) => show(start + span * share, span);

  // How much of the picture's width a pixel of the screen is.
  const unit = () => (outer.viewBox.baseVal.width / outer.getBoundingClientRect().width) / width;
  const place = (event) => {
    const share = (event.clientX - outer.getBoundingClientRect().left) * unit() - left / width;
    return Math.min(1, Math.max(0, share));
  };
  outer.addEventListener("wheel", (event) => {
    // All in view: the page scrolls on.
    if (event.ctrlKey || (event.deltaY > 0 && span >= WHOLE)) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / 1000);
    else zoom(event.deltaY < 0 ? 1 / 1.3 : 1.3, place(event));
  }, { passive: false });
  let grip = null;
  outer.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    grip = { x: event.clientX, start };
    outer.setPointerCapture(event.pointerId);
  });
  outer.addEventListener("pointermove", (event) => {
    if (grip) show(grip.start - (event.clientX - grip.x) * unit() * span, span);
  });
  for (const end of ["pointerup", "pointercancel"]) outer.addEventListener(end, () => { grip = null; });
  const keys = {
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => show(0, WHOLE),
    ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), ArrowUp: () => zoom(0.5), ArrowDown: () => zoom(2),
  };
  outer.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });

  const bar = document.createElement("div");
  bar.className = "controls";
  const named = { "+": "zoom in", "\u2212": "zoom out", "\u25c0": "earlier", "\u25b6": "later", "all": "the whole iteration" };
  const acts = [keys["+"], keys["-"], keys.ArrowLeft, keys.ArrowRight, keys["0"]];
  Object.entries(named).forEach(([text, label], index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.title = label;
    button.setAttribute("aria-label", label);
    button.addEventListener("click", acts[index]);
    bar.append(button);
  });
  const said = document.createElement("output");
  const hint = "Wheel, buttons or + \u2212 0 and arrows zoom; drag to move; point at an event to read it.";
  said.textContent = hint;
  bar.append(said);
  figure.insertBefore(bar, figure.querySelector(".scroll"));
  view.addEventListener("pointerover", (event) => {
    const title = event.target.querySelector && event.target.tagName === "rect" && event.target.querySelector("title");
    said.textContent = title ? title.textContent : hint;
  });
}
