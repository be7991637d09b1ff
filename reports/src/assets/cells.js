"use strict";
// A table of many rows: only those in view exist on the page. The filters are kept in the address.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { columns, words, rows } = data;
  const ROW = 27;
  const box = document.getElementById("grid");
  const body = box.querySelector("tbody");
  const heads = Array.from(box.querySelectorAll("th"));
  const inputs = {};
  for (const input of document.querySelectorAll("[data-filter]")) inputs[input.dataset.filter] = input;
  const shown = document.getElementById("shown");
  const at = Object.fromEntries(columns.map((column, index) => [column.key, index]));
  const plain = (row, column) => {
    const value = row[column];
    if (value === null) return "";
    return columns[column].kind === "word" ? words[columns[column].key][value] : String(value);
  };
  const texts = columns.map((column, index) => index).filter((index) => ["word", "text"].includes(columns[index].kind));
  const haystack = rows.map((row) => texts.map((column) => plain(row, column)).join(" ").toLowerCase());

  const three = (n) => (n >= 99.95 ? n.toFixed(0) : n >= 9.995 ? n.toFixed(1) : n.toFixed(2));
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  const bytes = (n) => {
    let unit = 0;
    while (n >= 1024 && unit < 6) { n /= 1024; unit += 1; }
    return (unit === 0 ? String(n) : three(n)) + " " + units[unit];
  };
  const time = (n) => {
    const [size, unit] = n < 1e3 ? [1, "ns"] : n < 1e6 ? [1e3, "\u00b5s"] : n < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    return three(n / size) + " " + unit;
  };
  const share = (n) => {
    const value = n * 100;
    if (value === 0) return "0 %";
    if (Math.abs(value) < 0.01) return value > 0 ? "< 0.01 %" : "> -0.01 %";
    return (Math.abs(value) < 100 ? value.toFixed(2) : value.toFixed(0)) + " %";
  };
  const format = { bytes, time, share, count: (n) => String(n), text: (t) => t, word: (t) => t, link: (t) => t };

  let view = [];
  let state = { q: "", planner: "", status: "", sort: "", dir: "up" };

  const read = () => {
    const values = new URLSearchParams(location.hash.slice(1));
    for (const key of Object.keys(state)) state[key] = values.get(key) || (key === "dir" ? "up" : "");
    for (const key of Object.keys(inputs)) inputs[key].value = state[key];
  };
  const write = () => {
    const values = new URLSearchParams();
    for (const [key, value] of Object.entries(state)) if (value && !(key === "dir" && value === "up")) values.set(key, value);
    const hash = "#" + values.toString();
    if (hash !== (location.hash || "#")) history.replaceState(null, "", hash);
  };

  const select = () => {
    const terms = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const wants = terms.filter((term) => !term.startsWith("-"));
    const bans = terms.filter((term) => term.length > 1 && term.startsWith("-")).map((term) => term.slice(1));
    const word = (key) => (state[key] === "" ? -1 : words[key].indexOf(state[key]));
    const planner = word("planner");
    const status = word("status");
    view = [];
    rows.forEach((row, index) => {
      if (state.planner && row[at.planner] !== planner) return;
      if (state.status && row[at.status] !== status) return;
      if (!wants.every((term) => haystack[index].includes(term))) return;
      if (bans.some((term) => haystack[index].includes(term))) return;
      view.push(index);
    });
    const column = at[state.sort];
    if (column !== undefined) {
      const sign = state.dir === "down" ? -1 : 1;
      view.sort((a, b) => {
        const [x, y] = [rows[a][column], rows[b][column]];
        if (x === y) return a - b;
        if (x === null) return 1;
        if (y === null) return -1;
        return x < y ? -sign : sign;
      });
    }
    heads.forEach((head, index) => {
      if (index === column) head.setAttribute("aria-sort", state.dir === "down" ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    shown.textContent = view.length === rows.length ? rows.length + " rows" : view.length + " of " + rows.length + " rows";
  };

  const filler = (height) => {
    const row = document.createElement("tr");
    row.className = "gapfill";
    const cell = row.insertCell();
    cell.colSpan = columns.length;
    cell.style.height = height + "px";
    return row;
  };
  const draw = (index) => {
    const row = document.createElement("tr");
    columns.forEach((column, number) => {
      const cell = row.insertCell();
      const value = rows[index][number];
      if (!["word", "text", "link"].includes(column.kind)) cell.className = "number";
      if (value === null) { cell.textContent = "\u2013"; return; }
      const text = column.kind === "word" ? words[column.key][value] : format[column.kind](value);
      if (column.key === "workload") {
        const link = document.createElement("a");
        link.href = data.pages[value];
        link.textContent = text;
        cell.append(link);
      } else if (column.kind === "link") {
        const link = document.createElement("a");
        link.href = value;
        link.textContent = "map";
        cell.append(link);
      } else {
        cell.textContent = text;
      }
      if (column.kind === "bytes") cell.title = value + " bytes";
      else if (column.kind === "text") cell.title = value;
    });
    return row;
  };
  let drawn = "";
  const paint = () => {
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 15);
    const last = Math.min(view.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + 15);
    const key = first + ":" + last;
    if (key === drawn) return;
    drawn = key;
    const visible = view.slice(first, last).map(draw);
    body.replaceChildren(filler(first * ROW), ...visible, filler((view.length - last) * ROW));
  };
  const refresh = () => { select(); box.scrollTop = 0; drawn = ""; paint(); };

  for (const [key, input] of Object.entries(inputs)) {
    input.addEventListener("input", () => { state[key] = input.value; write(); refresh(); });
  }
  heads.forEach((head, index) => {
    head.addEventListener("click", () => {
      const key = columns[index].key;
      state.dir = state.sort === key && state.dir === "up" ? "down" : "up";
      state.sort = key;
      write();
      refresh();
    });
  });
  document.getElementById("reset").addEventListener("click", () => {
    state = { q: "", planner: "", status: "", sort: "", dir: "up" };
    for (const input of Object.values(inputs)) input.value = "";
    write();
    refresh();
  });
  box.addEventListener("scroll", paint, { passive: true });
  window.addEventListener("resize", paint);
  window.addEventListener("hashchange", () => { read(); refresh(); });
  read();
  refresh();
})();
