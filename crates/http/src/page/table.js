// Tables whose rows are cards on a phone.

import { h } from './dom.js';

/**
 * The rows of a table.
 *
 * A column has `name` and maybe `number` (to the right), `wide` (takes the room, and wraps), `tone` (a class of its cells)
 * and `title`. A row has `key`, `cells` and maybe `tone`. On a narrow screen each row is a card, with the names of the
 * columns in it.
 */
export const tableRows = (columns, rows) => rows.map(row =>
  h('tr', { role: 'row', key: row.key, class: row.tone }, row.cells.map((content, at) => cell(columns[at], content, at))));

/** The head of a table. */
export const tableHead = columns =>
  h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, columns.map(column =>
    h('th', { role: 'columnheader', scope: 'col', class: classOf(column), title: column.title }, column.name))));

function cell(column, content, at) {
  const isEmpty = content === null || content === undefined || content === '';
  const props = { class: [classOf(column), column.tone, isEmpty && 'none'].filter(Boolean).join(' ') || null };
  // A heading of the row names it; on a phone it is the title of the card.
  if (at === 0) return h('th', { role: 'rowheader', scope: 'row', ...props }, content);
  return h('td', { role: 'cell', 'data-label': column.name, ...props }, content);
}

const classOf = column => [column.number && 'number', column.wide && 'wide'].filter(Boolean).join(' ') || null;
