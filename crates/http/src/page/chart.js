// Sparklines.

import { h } from './dom.js';

const WIDTH = 120;
const HEIGHT = 24;

/** A line of values, oldest first; `label` says what it shows, for those who do not see it. */
export function sparkline(values, label, { slots = 60, tone = '' } = {}) {
  const shown = values.slice(-slots);
  const max = Math.max(1, ...shown);
  const step = WIDTH / (slots - 1);
  const start = WIDTH - (shown.length - 1) * step;
  const points = shown.map((value, at) => {
    const y = HEIGHT - 1 - value / max * (HEIGHT - 3);
    return `${(start + at * step).toFixed(1)},${y.toFixed(1)}`;
  });
  const line = points.length > 1 ? `M${points.join('L')}` : '';
  const area = line && `${line}L${WIDTH},${HEIGHT}L${start.toFixed(1)},${HEIGHT}Z`;
  const size = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none' };
  return h('svg', { class: `spark ${tone}`.trim(), role: 'img', 'aria-label': label, ...size },
    h('path', { class: 'ground', d: `M0,${HEIGHT - 0.5}H${WIDTH}` }),
    h('path', { class: 'area', d: area }),
    h('path', { class: 'line', d: line }));
}
