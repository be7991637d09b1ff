// Words of an axis of time, for every picture that has one.
// The least of 1, 2 and 5 times a power of ten that is not below `raw`.
const roundStep = (raw) => {
  const power = 10 ** Math.floor(Math.log10(raw));
  return ([1, 2, 5].find((factor) => factor * power >= raw * (1 - 1e-9)) || 10) * power;
};

// A tick of an axis of nanoseconds with this step; `whole` is its length.
const tickText = (ns, step, whole) => {
  if (Math.abs(ns) < step / 2) return "0";
  const [size, unit] = whole >= 1e9 && step >= 1e7 ? [1e9, "s"] : step >= 1e4 ? [1e6, "ms"] : [1e3, "\u00b5s"];
  const digits = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
  return (ns / size).toFixed(digits) + " " + unit;
};

// A time in nanoseconds, to the microsecond or finer.
const timeText = (ns) => {
  const [size, unit, digits] = ns >= 1e9 ? [1e9, "s", 6] : ns >= 1e6 ? [1e6, "ms", 3] : ns >= 1e3 ? [1e3, "\u00b5s", 3] : [1, "ns", 0];
  return (ns / size).toFixed(digits) + " " + unit;
};
