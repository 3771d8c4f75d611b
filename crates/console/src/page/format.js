// Times and names as texts.

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** What stands for a value that there is none of. */
export const NONE = '–';

/** A time of the clock, with the day if it is not that of `now`. */
export function time(at, now) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  const isToday = date.toDateString() === new Date(now ?? Date.now()).toDateString();
  return isToday ? clock.format(date) : `${day.format(date)} ${clock.format(date)}`;
}

/** The first letter as a capital, for a sentence. */
export const sentence = text => text.charAt(0).toUpperCase() + text.slice(1);

/** The names of a list, as `a, b and c`. */
export const list = names =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names[names.length - 1]}`;

/** Group and version, as `apps/v1`. */
export const apiVersion = kind => (kind.group ? `${kind.group}/${kind.version}` : kind.version);

/** A key as a user writes it; without a namespace it is the name. */
export const keyName = key => (key.startsWith('/') ? key.slice(1) : key);
