// What the address says is shown, and the addresses of what can be shown.
//
//   #/                                              the overview
//   #/controllers/apps~v1~Deployment                a controller
//   #/controllers/apps~v1~Deployment/shop~web       a key
//   #/caches  #/leases  #/guards  #/plan            the rest
//
// With several factories `?context=ID` follows.

export const segmentOf = kind => [kind.group || 'core', kind.version, kind.kind].join('~');

/** A kind alone, of what names its kind beside other things. */
export const kindOnly = ({ context, group, version, kind }) => ({ context, group, version, kind });

/** Returns the segment of `namespace/name`, or of `name` without a namespace. */
export function keySegment(key) {
  const slash = key.indexOf('/');
  return slash < 0 ? `~${key}` : `${key.slice(0, slash)}~${key.slice(slash + 1)}`;
}

const query = context => (context ? `?context=${encodeURIComponent(context)}` : '');

export const controllerAddress = kind => `#/controllers/${encodeURIComponent(segmentOf(kind))}${query(kind.context)}`;

export const keyAddress = (kind, key) =>
  `#/controllers/${encodeURIComponent(segmentOf(kind))}/${encodeURIComponent(keySegment(key))}${query(kind.context)}`;

/** The path in the API of what a route shows. */
export function apiPath(route) {
  const controller = `controllers/${encodeURIComponent(segmentOf(route.kind))}`;
  const path = route.key === undefined ? controller : `${controller}/keys/${encodeURIComponent(keySegment(route.key))}`;
  return path + query(route.kind.context);
}

/** Returns what a hash says, or the overview if it says nothing that is known. */
export function routeOf(hash) {
  const [path, search] = hash.replace(/^#?\/?/, '').split('?');
  const [view, segment, key] = path.split('/').map(decode);
  if (view !== 'controllers') return { view: ['caches', 'leases', 'guards', 'plan'].includes(view) ? view : 'overview' };
  const kind = kindOf(segment, new URLSearchParams(search).get('context') ?? '');
  if (!kind) return { view: 'overview' };
  return key?.includes('~') ? { view: 'key', kind, key: key.replace('~', '/') } : { view: 'controller', kind };
}

function kindOf(segment, context) {
  const [group, version, kind] = (segment ?? '').split('~');
  return kind ? { context, group: group === 'core' ? '' : group, version, kind } : null;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
