// What is around the view: the program, the tabs, and the connection.

import { findings } from './attention.js';
import { $, h, render, setText } from './dom.js';
import { time } from './format.js';
import { seconds } from './numbers.js';

const TABS = [
  ['overview', 'Overview', '#/'],
  ['caches', 'Caches', '#/caches'],
  ['leases', 'Leases', '#/leases'],
  ['guards', 'Guards', '#/guards'],
  ['plan', 'Plan', '#/plan'],
];

export function drawFrame(state) {
  drawConnection(state);
  drawTabs(state);
  if (state.overview) drawProgram(state);
}

function drawProgram({ overview, details }) {
  const { program, health } = overview;
  const isWell = health.healthy && health.ready;
  render($('program'), [
    h('b', {}, program.name),
    program.version && h('span', { class: 'quiet' }, program.version),
    h('span', { class: `badge ${isWell ? 'good' : 'bad'}` }, !health.healthy ? 'not healthy' : health.ready ? 'ready' : 'not ready'),
    h('span', { class: 'quiet uptime' }, `up ${seconds(program.uptime)}`),
  ]);
  const wrong = findings(overview, details).filter(finding => finding.level !== 'info').length;
  document.title = `${wrong ? `(${wrong}) ` : ''}${program.name}`;
}

function drawTabs({ overview, route: { view } }) {
  const isEmpty = { guards: overview && !overview.guards.length, plan: overview && overview.planned === null };
  const shown = TABS.filter(([name]) => !isEmpty[name] || name === view);
  const isBelow = name => name === 'overview' && ['controller', 'key'].includes(view);
  render($('tabs'), shown.map(([name, text, href]) =>
    h('a', { key: name, href, 'aria-current': name === view ? 'page' : isBelow(name) ? 'true' : null }, text)));
}

function drawConnection({ lost, overview }) {
  const live = $('live');
  live.className = lost ? 'lost' : overview ? 'on' : '';
  setText(live, lost ? 'disconnected' : overview ? 'live' : 'connecting');
  const notice = $('connection');
  notice.hidden = !lost;
  setText(notice.querySelector('span'), lost ? lostText(lost, overview) : '');
  notice.querySelector('button').hidden = ![401, 403].includes(lost?.error.code);
}

function lostText({ error }, overview) {
  const shown = overview ? ` What is shown is the state of ${time(overview.program.now)}.` : '';
  return `Disconnected: ${error.message}.${shown}${error.code === 401 ? '' : ' Connecting again…'}`;
}
