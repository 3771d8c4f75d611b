// Numbers and durations as texts.

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 });

/** A number, with commas between the thousands. */
export const count = number => whole.format(number);

/** A number and its noun: `1 key`, `12 keys`. */
export const counted = (number, noun, plural = `${noun}s`) => `${count(number)} ${number === 1 ? noun : plural}`;

/** A number per second. */
export function rate(number) {
  if (number > 0 && number < 0.05) return '<0.1';
  return number < 100 ? tenth.format(number) : whole.format(number);
}

/** A part of all. */
export function percent(part, all) {
  if (!all || !part) return '0 %';
  const share = 100 * part / all;
  return share < 0.1 ? '<0.1 %' : `${share < 10 ? tenth.format(share) : whole.format(share)} %`;
}

/** A number of bytes. */
export function bytes(number) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (number >= 1024 && unit + 1 < units.length) {
    number /= 1024;
    unit += 1;
  }
  return `${unit && number < 100 ? tenth.format(number) : whole.format(number)} ${units[unit]}`;
}

/** A duration, in its two largest units. */
export function seconds(value) {
  if (value === 0) return '0 s';
  if (value < 0.001) return '<1 ms';
  if (value < 0.9995) return `${whole.format(value * 1000)} ms`;
  if (value < 9.95) return `${tenth.format(value)} s`;
  const total = Math.round(value);
  if (total < 60) return `${total} s`;
  const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];
  const first = units.findIndex(([, size]) => total >= size);
  const [name, size] = units[first];
  const rest = units[first + 1] ? Math.floor(total % size / units[first + 1][1]) : 0;
  return rest ? `${Math.floor(total / size)} ${name} ${rest} ${units[first + 1][0]}` : `${Math.floor(total / size)} ${name}`;
}
