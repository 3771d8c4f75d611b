// Leases, shards, guards, and what plan mode would write.

import { guardKey, resetButton } from './attention.js';
import { h } from './dom.js';
import { list, NONE } from './format.js';
import { count, counted } from './numbers.js';
import { badge, loading, section, table } from './parts.js';

const LEASES = [
  { name: 'Lease' },
  { name: 'State' },
  { name: 'Holder' },
  { name: 'This process' },
  { name: 'Epoch', title: 'Transitions of the lease, while this process leads', number: true },
  { name: 'Acquired', number: true },
  { name: 'Renewals', number: true },
  { name: 'Slow renewals', title: 'Renewals that had to read the lease first', number: true },
];

export const leasesView = ({ overview }) => [
  h('h1', { class: 'sr', tabindex: '-1' }, 'Leases and shards'),
  section('Leases', {}, table('Leases', LEASES, overview.leases.map(lease => ({
    key: `${lease.context} ${lease.lease}`,
    cells: [
      [lease.lease, lease.context && h('span', { class: 'quiet small' }, ` ${lease.context}`)],
      badge(lease.state, { leading: 'good', ended: 'bad' }[lease.state]),
      lease.holder ?? 'unknown',
      lease.identity,
      lease.epoch === null ? NONE : count(lease.epoch),
      count(lease.acquired),
      count(lease.renewals),
      count(lease.slowRenewals),
    ],
  })), { empty: 'The process takes part in no lease: it does not elect a leader.' })),
  section('Shards', {}, table('Shards', [{ name: 'Factory' }, { name: 'Members', number: true }, { name: 'This process' }],
    overview.shards.map(shards => ({
      key: shards.context,
      cells: [shards.context || 'the only one', count(shards.members), shards.member ? badge('a member', 'good') : badge('not a member', 'warn')],
    })), { empty: 'The keys are not shared among processes.' })),
];

const GUARDS = [{ name: 'Operator' }, { name: 'State', wide: true }, { name: 'Reconcilers' }, { name: 'Budgets' }, { name: 'Refused', number: true }];

export function guardsView({ overview }) {
  const may = overview.allowed.actions;
  return [
    h('h1', { class: 'sr', tabindex: '-1' }, 'Guards'),
    section('Guards', {}, table('Guards', may ? [...GUARDS, { name: 'Action' }] : GUARDS, overview.guards.map((guard, index) => ({
      key: `${guardKey(guard)} ${index}`,
      cells: [
        guard.operator,
        [badge(guard.tripped ? 'tripped' : 'closed', guard.tripped ? 'bad' : ''), guard.reason && h('p', { class: 'error' }, guard.reason)],
        list(guard.reconcilers),
        guard.budgets.map(budget => h('div', { key: budget }, budget)),
        count(guard.refused),
        ...(may ? [guard.tripped ? resetButton(guard) : null] : []),
      ],
    })), { empty: 'No reconciler has a guard.' })),
  ];
}

export function planView({ overview, detail, detailError }) {
  const note = detail ? noteOf(detail) : null;
  return [
    h('h1', { class: 'sr', tabindex: '-1' }, 'Plan'),
    section('What plan mode would write', { note }, planBody(overview, detail, detailError)),
  ];
}

const noteOf = ({ writes, total }) => (writes.length < total ? `${count(writes.length)} of ${counted(total, 'write')}` : counted(total, 'write'));

function planBody(overview, plan, error) {
  if (overview.planned === null) return h('p', { class: 'empty' }, 'No operator is in plan mode.');
  if (!plan) return loading(error);
  const columns = [{ name: 'Write', wide: true }, { name: 'Operator' }, { name: 'Dry run', wide: true }];
  return table('Planned writes', columns, plan.writes.map((write, at) => ({
    key: at,
    cells: [write.text, write.operator, write.refused ? h('span', { class: 'error' }, `refused: ${write.refused}`) : 'accepted'],
  })), { empty: 'Nothing would be written.', limit: 1000 });
}
