//! Remembers what was applied, to save requests that would change nothing.
//!
//! For each object of a set it holds a hash of the wanted object, and the resource version in which the object was as
//! wanted. An object in that state needs no request. A newer state needs none either if it differs in the status only.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lariat_cache::{CachedObject, MapperError, RestMapper, ServedKinds, Store};
use lariat_core::{Gvk, ObjectKey, ResourceVersion, TableSize, Uid};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use super::siblings::Siblings;

/// The kind and key of an object of a set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ObjectId {
    pub(super) gvk: Gvk,
    pub(super) key: ObjectKey,
}

/// What an operator remembers of all sets.
///
/// It grows with the sets of existing owners. Owners are forgotten when they are deleted, and all owners of a kind when
/// its last reconciler ends.
#[derive(Default)]
pub(crate) struct Memory {
    /// The owners by kind; a kind has an entry while it has reconcilers.
    owners: Mutex<HashMap<Gvk, OfKind>>,
    /// The last discovery, and when it was made.
    ///
    /// The lock is held during discovery, so that concurrent calls share one.
    served: AsyncMutex<Option<(Instant, Arc<ServedKinds>)>>,
    /// Kinds that may not be read, each with the owner for which that was logged.
    forbidden: Mutex<HashMap<Gvk, Uid>>,
    /// Group and kind of every object that was applied for any owner.
    kinds: Mutex<HashSet<(String, String)>>,
}

/// The number of owners from which deleted ones are looked for and removed.
const CLEAR_AT: usize = 64;

/// The bound of the applied kinds, forbidden kinds and an owner's unclear objects.
///
/// Beyond it every kind counts as applied, and a warning may be repeated.
const MOST: usize = 1024;

/// How long a discovery is reused.
///
/// It saves a discovery in each call for kinds that are no longer served.
const SERVED_BELIEVED: Duration = Duration::from_secs(30);

/// The owners of a kind.
#[derive(Default)]
struct OfKind {
    /// The number of reconcilers.
    reconcilers: usize,
    owners: HashMap<ObjectKey, OfOwner>,
    /// The number of owners after the last removal of deleted ones.
    left: usize,
}

struct OfOwner {
    uid: Uid,
    /// The objects by set; each set has at least one.
    sets: HashMap<String, HashMap<ObjectId, AppliedState>>,
    /// Objects of steps as last read, if the cache has only a part of them.
    whole: HashMap<(String, ObjectId), Arc<CachedObject>>,
    /// Objects that are not deleted because it is unknown who applied them.
    ///
    /// A warning was logged for each.
    unclear: HashSet<Uid>,
    /// The sets that were applied, with what they want.
    siblings: Siblings,
}

/// What was wanted of an object, and the newest known state in which it was so.
#[derive(Clone)]
struct AppliedState {
    /// The hash of the wanted object.
    wanted: u64,
    /// The object; another one of the same name is not as wanted.
    uid: Uid,
    version: ResourceVersion,
    content: Content,
    /// The cached state that was last found to have this content.
    seen: Weak<CachedObject>,
    /// The content in which a cache shows it, of which a transform may have removed parts.
    shown: Option<Content>,
}

/// Hashes of an object without the parts that every write changes.
#[derive(Clone, Copy, Default, PartialEq)]
struct Content {
    /// The hash of the metadata, if the object has a generation.
    ///
    /// The generation grows with every change outside of metadata and status, so this covers the content too. For some
    /// kinds it does not grow, so this is used only if `whole` is unknown.
    metadata: Option<u64>,
    /// The hash of the object without its status; `None` if only metadata is cached.
    whole: Option<u64>,
}

/// A state of an object, from an answer of the API server or a cache.
#[derive(Clone, Copy)]
pub(super) struct ObjectState<'a> {
    pub(super) uid: &'a Uid,
    pub(super) version: &'a ResourceVersion,
    pub(super) json: &'a [u8],
}

/// What is remembered of one set.
pub(super) struct SetMemory<'a> {
    pub(super) memory: &'a Memory,
    pub(super) owner_gvk: &'a Gvk,
    pub(super) owner: &'a CachedObject,
    /// The cached objects of the owner's kind.
    pub(super) owners: &'a Store,
    pub(super) set: &'a str,
}

impl Memory {
    /// Counts a new reconciler of a kind.
    pub(crate) fn begin(&self, gvk: &Gvk) {
        let mut kinds = self.owners.lock();
        kinds.entry(gvk.clone()).or_default().reconcilers += 1;
    }

    /// Counts a reconciler of a kind that has ended, and wants nothing any more.
    ///
    /// With the last one the owners of the kind are forgotten.
    pub(crate) fn end(&self, gvk: &Gvk) {
        let mut kinds = self.owners.lock();
        if let Some(of_kind) = kinds.get_mut(gvk) {
            of_kind.reconcilers -= 1;
            if of_kind.reconcilers == 0 {
                kinds.remove(gvk);
            } else {
                let owners = of_kind.owners.values_mut();
                owners.for_each(|owner| owner.siblings.forget_ended());
            }
        }
    }

    /// Forgets an owner.
    pub(crate) fn forget(&self, gvk: &Gvk, key: &ObjectKey) {
        if let Some(of_kind) = self.owners.lock().get_mut(gvk) {
            of_kind.owners.remove(key);
        }
    }

    /// Appends the sizes of the maps, for metrics.
    pub(crate) fn table_sizes(&self, all: &mut Vec<TableSize>) {
        let kinds = self.owners.lock();
        let mut sizes: Vec<_> = kinds
            .iter()
            .map(|(gvk, of)| (gvk.clone(), of.owners.len(), of.clear_at()))
            .collect();
        drop(kinds);
        sizes.sort_by(|a, b| a.0.cmp(&b.0));
        let owners = |(gvk, owners, most): &(Gvk, usize, usize)| {
            TableSize::new("owners of sets", *owners, *most).of(gvk)
        };
        all.extend(sizes.iter().map(owners));
        let applied = self.kinds.lock().len();
        all.push(TableSize::new("applied kinds", applied, MOST));
        let forbidden = self.forbidden.lock().len();
        all.push(TableSize::new("forbidden kinds", forbidden, MOST));
    }

    /// Records that a kind cannot be read for an owner; returns whether that is new.
    pub(super) fn is_first_unreadable(&self, gvk: &Gvk, owner: &Uid) -> bool {
        let mut forbidden = self.forbidden.lock();
        let is_first = !forbidden.contains_key(gvk);
        if is_first {
            // The bound costs a repeated warning, not correctness.
            if forbidden.len() >= MOST {
                forbidden.clear();
            }
            forbidden.insert(gvk.clone(), owner.clone());
        }
        is_first
    }

    /// Records that a kind was read for an owner.
    ///
    /// Only the owner for which the warning was logged ends it. An owner in another namespace may be allowed to read
    /// the kind, and the warning would otherwise be repeated each time the two take turns.
    pub(super) fn was_read(&self, gvk: &Gvk, owner: &Uid) {
        let mut forbidden = self.forbidden.lock();
        if forbidden.get(gvk) == Some(owner) {
            forbidden.remove(gvk);
        }
    }

    /// Returns whether this process has applied an object of a kind, in any version.
    pub(super) fn has_applied(&self, gvk: &Gvk) -> bool {
        let kind = (gvk.group().to_owned(), gvk.kind().to_owned());
        let kinds = self.kinds.lock();
        kinds.len() >= MOST || kinds.contains(&kind)
    }

    /// Returns the served kinds, by a discovery that is at most 30 seconds old.
    pub(super) async fn served_kinds(
        &self,
        mapper: &RestMapper,
    ) -> Result<Arc<ServedKinds>, MapperError> {
        let mut served = self.served.lock().await;
        if let Some((at, served_kinds)) = &*served
            && at.elapsed() < SERVED_BELIEVED
        {
            return Ok(Arc::clone(served_kinds));
        }
        let served_kinds = Arc::new(mapper.served_kinds().await?);
        *served = Some((Instant::now(), Arc::clone(&served_kinds)));
        Ok(served_kinds)
    }

    /// Returns the number of objects remembered.
    #[cfg(test)]
    fn len(&self) -> usize {
        let kinds = self.owners.lock();
        let owners = kinds.values().flat_map(|of_kind| of_kind.owners.values());
        let sets = owners.flat_map(|owner| owner.sets.values());
        sets.map(HashMap::len).sum()
    }
}

impl OfKind {
    fn clear_at(&self) -> usize {
        CLEAR_AT.max(2 * self.left)
    }

    /// Returns the entry of an owner, which is empty at first.
    fn owner(&mut self, owner: &CachedObject, owners: &Store) -> &mut OfOwner {
        // Owners are forgotten when their deletion is handled. This removes those deleted while the factory was
        // stopped, each time their number has doubled, which keeps the cost per owner constant.
        if self.owners.len() >= self.clear_at() && !self.owners.contains_key(owner.key()) {
            let exists = |key: &ObjectKey, uid: &Uid| {
                let cached = owners.get(key);
                cached.is_some_and(|cached| cached.uid() == uid)
            };
            self.owners
                .retain(|key, of_owner| exists(key, &of_owner.uid));
            self.left = self.owners.len();
        }
        // Keyed by name and checked by uid, so that a recreated owner replaces the entry of the old one.
        let entry = self.owners.entry(owner.key().clone());
        let of_owner = entry.or_insert_with(|| OfOwner::of(owner));
        // An owner that was deleted and recreated under the same name has applied nothing yet.
        if of_owner.uid != *owner.uid() {
            *of_owner = OfOwner::of(owner);
        }
        of_owner
    }
}

impl OfOwner {
    fn of(owner: &CachedObject) -> Self {
        Self {
            uid: owner.uid().clone(),
            sets: HashMap::new(),
            whole: HashMap::new(),
            unclear: HashSet::new(),
            siblings: Siblings::default(),
        }
    }
}

impl SetMemory<'_> {
    fn with_owner<T>(&self, act: impl FnOnce(&mut OfOwner) -> T) -> T {
        let mut kinds = self.memory.owners.lock();
        match kinds.get_mut(self.owner_gvk) {
            Some(of_kind) => act(of_kind.owner(self.owner, self.owners)),
            // A call may outlive its reconciler's registration. Nothing is remembered for it.
            None => act(&mut OfOwner::of(self.owner)),
        }
    }

    /// Returns what is remembered of an object.
    fn entry(&self, id: &ObjectId) -> Option<AppliedState> {
        self.with_owner(|of_owner| of_owner.sets.get(self.set)?.get(id).cloned())
    }

    fn insert(&self, id: &ObjectId, entry: AppliedState) {
        self.with_owner(|of_owner| {
            let set = of_owner.sets.entry(self.set.to_owned()).or_default();
            set.insert(id.clone(), entry);
        });
    }

    /// Records that it is unknown who applied an object; returns whether that is new.
    pub(super) fn is_first_unclear(&self, uid: &Uid) -> bool {
        self.with_owner(|of_owner| {
            if of_owner.unclear.len() >= MOST {
                of_owner.unclear.clear();
            }
            of_owner.unclear.insert(uid.clone())
        })
    }

    /// Calls a function with the sets of the owner.
    pub(super) fn siblings<T>(&self, act: impl FnOnce(&mut Siblings) -> T) -> T {
        self.with_owner(|of_owner| act(&mut of_owner.siblings))
    }

    /// Returns whether an object is unchanged since the same was applied.
    ///
    /// Its status may differ.
    pub(super) fn is_as_applied(
        &self,
        id: &ObjectId,
        wanted: u64,
        now: &Arc<CachedObject>,
    ) -> bool {
        let Some(entry) = self.entry(id) else {
            return false;
        };
        if entry.wanted != wanted || entry.uid != *now.uid() {
            return false;
        }
        let seen = Arc::downgrade(now);
        if entry.seen.ptr_eq(&seen) {
            return true;
        }
        // Each write of the status changes the resource version too, and after a restore of the API server a version may
        // be of two states, so the contents are compared: with the one that was applied, or with what the cache showed
        // of it. The generation stands in for the parts outside of metadata that a transform has removed.
        let content = Content::of_cached(now);
        let is_version = entry.version == *now.version();
        let is_shown = match entry.shown {
            Some(shown) if content.whole.is_some() => {
                let shows_metadata = content.metadata == entry.content.metadata;
                let has_generation = content.metadata.is_some() && shows_metadata;
                content.is_same(shown) && (is_version || has_generation)
            }
            // The first sight of the state, or only metadata is cached.
            _ => is_version,
        };
        if !is_shown && !content.is_same(entry.content) {
            return false;
        }
        let (version, shown) = (now.version().clone(), Some(content));
        let state = AppliedState {
            version,
            seen,
            shown,
            ..entry
        };
        self.insert(id, state);
        true
    }

    /// Returns the remembered whole of a cached object, if it is of the same state.
    pub(super) fn whole(&self, id: &ObjectId, now: &CachedObject) -> Option<Arc<CachedObject>> {
        let id = (self.set.to_owned(), id.clone());
        let known = self.with_owner(|of_owner| of_owner.whole.get(&id).cloned());
        known.filter(|known| known.uid() == now.uid() && known.version() == now.version())
    }

    /// Remembers the whole of an object that was read.
    pub(super) fn remember_whole(&self, id: &ObjectId, object: &Arc<CachedObject>) {
        let id = (self.set.to_owned(), id.clone());
        self.with_owner(|of_owner| of_owner.whole.insert(id, Arc::clone(object)));
    }

    /// Returns whether the set has applied an object of this uid.
    pub(super) fn knows(&self, id: &ObjectId, uid: &Uid) -> bool {
        self.entry(id).is_some_and(|entry| entry.uid == *uid)
    }

    /// Returns whether the set has applied an object of this name.
    pub(super) fn has(&self, id: &ObjectId) -> bool {
        self.entry(id).is_some()
    }

    /// Remembers a state that is as wanted, such as the answer to an apply.
    ///
    /// If the cache shows it already, its content there is remembered too: later the version may be of another state.
    pub(super) fn remember(
        &self,
        id: &ObjectId,
        wanted: u64,
        state: ObjectState<'_>,
        cached: Option<&Arc<CachedObject>>,
    ) {
        let is_it = |cached: &&Arc<CachedObject>| {
            cached.uid() == state.uid && cached.version() == state.version
        };
        let cached = cached.filter(is_it);
        let entry = AppliedState {
            wanted,
            uid: state.uid.clone(),
            version: state.version.clone(),
            content: Content::of(state.json),
            seen: cached.map(Arc::downgrade).unwrap_or_default(),
            shown: cached.map(|cached| Content::of_cached(cached)),
        };
        self.insert(id, entry);
        let kind = (id.gvk.group().to_owned(), id.gvk.kind().to_owned());
        let mut kinds = self.memory.kinds.lock();
        if kinds.len() < MOST {
            kinds.insert(kind);
        }
    }

    /// Forgets the objects that are no longer wanted.
    pub(super) fn keep(&self, is_wanted: impl Fn(&ObjectId) -> bool) {
        self.with_owner(|of_owner| {
            of_owner
                .whole
                .retain(|(set, id), _| set != self.set || is_wanted(id));
            if let Some(set) = of_owner.sets.get_mut(self.set) {
                set.retain(|id, _| is_wanted(id));
                if set.is_empty() {
                    of_owner.sets.remove(self.set);
                }
            }
        });
    }
}

/// Returns a hash that is valid in this process only.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Returns whether two states of an object differ at most in the status.
pub(super) fn is_same(a: &str, b: &str) -> bool {
    Content::of(a.as_bytes()).is_same(Content::of(b.as_bytes()))
}

impl Content {
    fn of_cached(object: &CachedObject) -> Self {
        let Some(json) = object.json() else {
            return Self::default();
        };
        let mut content = Self::of(&json);
        if !object.has_content() {
            // Only metadata is cached, which looks like an object without other fields.
            content.whole = None;
        }
        content
    }

    /// Hashes an object; without hashes if it does not parse.
    fn of(json: &[u8]) -> Self {
        Self::read(json).unwrap_or_default()
    }

    fn read(json: &[u8]) -> Option<Self> {
        let mut value: Value = serde_json::from_slice(json).ok()?;
        let object = value.as_object_mut()?;
        object.remove("status");
        let metadata = object.get_mut("metadata")?.as_object_mut()?;
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
        let has_generation = metadata.contains_key("generation");
        let of_metadata = serde_json::to_vec(metadata).ok()?;
        let whole = serde_json::to_vec(&value).ok()?;
        Some(Self {
            metadata: has_generation.then(|| hash(&of_metadata)),
            whole: Some(hash(&whole)),
        })
    }

    /// Returns whether two states have the same content.
    ///
    /// States without any hash are never the same.
    fn is_same(self, other: Self) -> bool {
        // The whole content decides if both states have it. The generation stands in for it only if not.
        match (self.whole, other.whole) {
            (Some(whole), Some(other)) => whole == other,
            _ => self.metadata.is_some() && self.metadata == other.metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lariat_core::RawObject;
    use serde_json::json;

    fn state<'a>(uid: &'a Uid, version: &'a ResourceVersion, json: &'a [u8]) -> ObjectState<'a> {
        ObjectState { uid, version, json }
    }

    /// A memory with a reconciler of Pods, and one of them.
    struct Bench {
        gvk: Gvk,
        memory: Memory,
        owners: Store,
        owner: CachedObject,
    }

    impl Bench {
        fn new() -> Self {
            let gvk = Gvk::new("", "v1", "Pod");
            let memory = Memory::default();
            memory.begin(&gvk);
            let owner = object(&pod("owner", "1", "x", "y"));
            Self {
                gvk,
                memory,
                owners: Store::default(),
                owner,
            }
        }

        fn set<'a>(&'a self, owner: &'a CachedObject) -> SetMemory<'a> {
            SetMemory {
                memory: &self.memory,
                owner_gvk: &self.gvk,
                owner,
                owners: &self.owners,
                set: "s",
            }
        }

        fn id(&self, key: ObjectKey) -> ObjectId {
            ObjectId {
                gvk: self.gvk.clone(),
                key,
            }
        }
    }

    fn object(value: &Value) -> CachedObject {
        let json = value.to_string();
        let gvk = Gvk::new("", "v1", "Pod");
        CachedObject::new(RawObject::parse(json.as_bytes(), &gvk).unwrap())
    }

    fn pod(uid: &str, version: &str, image: &str, phase: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "spec": {"image": image}, "status": {"phase": phase},
            "metadata": {"name": "a", "namespace": "n", "uid": uid, "resourceVersion": version}})
    }

    #[test]
    fn a_new_status_is_no_drift_and_everything_else_is() {
        let bench = Bench::new();
        let set = bench.set(&bench.owner);
        let id = bench.id(ObjectKey::namespaced("n", "a"));
        let (uid, version) = (Uid::new("u"), ResourceVersion::new("5"));
        let answer = pod("u", "5", "one", "Pending");
        let json = answer.to_string();
        set.remember(&id, 7, state(&uid, &version, json.as_bytes()), None);
        let is_as_applied =
            |wanted, value| set.is_as_applied(&id, wanted, &Arc::new(object(&value)));
        assert!(is_as_applied(7, pod("u", "5", "one", "Pending")));
        let of_another_history = pod("u", "5", "two", "Pending");
        assert!(!is_as_applied(7, of_another_history));
        assert!(is_as_applied(7, pod("u", "6", "one", "Running")));
        assert!(!is_as_applied(8, pod("u", "6", "one", "Running")));
        assert!(!is_as_applied(7, pod("u", "7", "two", "Running")));
        assert!(!is_as_applied(7, pod("v", "6", "one", "Running")));
        // Another owner of the same name has no memory of it.
        let recreated = object(&pod("again", "9", "x", "y"));
        let set = SetMemory {
            owner: &recreated,
            ..set
        };
        let now = Arc::new(object(&pod("u", "6", "one", "Running")));
        assert!(!set.is_as_applied(&id, 7, &now));
    }

    /// A transform has removed the spec from the cache.
    #[test]
    fn state_that_a_cache_shows_in_part_is_as_applied() {
        let bench = Bench::new();
        let set = bench.set(&bench.owner);
        let id = bench.id(ObjectKey::namespaced("n", "a"));
        let (uid, version) = (Uid::new("u"), ResourceVersion::new("5"));
        let marked = |mut pod: Value| {
            pod["metadata"]["labels"] = json!({"label": "a"});
            pod["metadata"]["generation"] = json!(1);
            pod
        };
        let json = marked(pod("u", "5", "one", "Pending")).to_string();
        set.remember(&id, 7, state(&uid, &version, json.as_bytes()), None);
        let shows = |version, phase, label: &str| {
            let mut part = marked(pod("u", version, "one", phase));
            part.as_object_mut().expect("an object").remove("spec");
            part["metadata"]["labels"] = json!({"label": label});
            set.is_as_applied(&id, 7, &Arc::new(object(&part)))
        };
        assert!(shows("5", "Pending", "a") && shows("5", "Pending", "a"));
        assert!(shows("6", "Running", "a"));
        assert!(!shows("7", "Running", "b") && !shows("6", "Running", "b"));
    }

    /// The server was restored, and gives the version again.
    #[test]
    fn applied_state_is_compared_by_content_when_a_version_is_repeated() {
        let bench = Bench::new();
        let set = bench.set(&bench.owner);
        let id = bench.id(ObjectKey::namespaced("n", "a"));
        let (uid, version) = (Uid::new("u"), ResourceVersion::new("5"));
        let applied = pod("u", "5", "one", "Pending");
        let cached = Arc::new(object(&applied));
        let json = applied.to_string();
        let answer = state(&uid, &version, json.as_bytes());
        set.remember(&id, 7, answer, Some(&cached));
        let other = Arc::new(object(&pod("u", "5", "two", "Pending")));
        assert!(set.is_as_applied(&id, 7, &cached) && !set.is_as_applied(&id, 7, &other));
    }

    #[test]
    fn a_generation_that_stays_does_not_hide_drift() {
        let class = |value: i64| {
            json!({"apiVersion": "v1", "kind": "Pod", "value": value,
                "metadata": {"name": "a", "uid": "u", "generation": 1}})
        };
        let remembered = Content::of(class(1).to_string().as_bytes());
        assert!(Content::of_cached(&object(&class(1))).is_same(remembered));
        assert!(!Content::of_cached(&object(&class(2))).is_same(remembered));
        let metadata_only = |value| Content {
            whole: None,
            ..Content::of_cached(&object(&class(value)))
        };
        assert!(metadata_only(1).is_same(remembered));
        let mut newer = class(1);
        newer["metadata"]["generation"] = json!(2);
        let newer = Content {
            whole: None,
            ..Content::of_cached(&object(&newer))
        };
        assert!(!newer.is_same(remembered));
    }

    #[test]
    fn a_kind_that_could_be_read_again_is_news_when_it_is_lost_again() {
        let (memory, gvk) = (Memory::default(), Gvk::new("", "v1", "Pod"));
        let (one, other) = (Uid::new("one"), Uid::new("other"));
        assert!(memory.is_first_unreadable(&gvk, &one));
        assert!(!memory.is_first_unreadable(&gvk, &other));
        memory.was_read(&gvk, &other);
        assert!(!memory.is_first_unreadable(&gvk, &one));
        memory.was_read(&gvk, &one);
        assert!(memory.is_first_unreadable(&gvk, &one));
    }

    #[test]
    fn owners_and_objects_are_forgotten() {
        let bench = Bench::new();
        let set = bench.set(&bench.owner);
        for name in ["a", "b"] {
            let id = bench.id(ObjectKey::cluster(name));
            let (uid, version) = (Uid::new("u"), ResourceVersion::new("1"));
            set.remember(&id, 7, state(&uid, &version, b"{}"), None);
        }
        assert_eq!(bench.memory.len(), 2);
        set.keep(|id| id.key.name() == "a");
        assert_eq!(bench.memory.len(), 1);
        bench.memory.forget(&bench.gvk, bench.owner.key());
        assert_eq!(bench.memory.len(), 0);
    }

    #[test]
    fn owners_are_remembered_as_long_as_they_exist_and_have_reconcilers() {
        let bench = Bench::new();
        let (memory, gvk) = (&bench.memory, &bench.gvk);
        memory.begin(gvk);
        let remember = |number: usize| {
            let mut owner = pod(&format!("u{number}"), "1", "x", "y");
            owner["metadata"]["name"] = format!("o{number}").into();
            let owner = object(&owner);
            let set = bench.set(&owner);
            let id = bench.id(ObjectKey::cluster("a"));
            let (uid, version) = (Uid::new("u"), ResourceVersion::new("1"));
            set.remember(&id, 7, state(&uid, &version, b"{}"), None);
        };
        let remembered = || {
            let mut all = Vec::new();
            memory.table_sizes(&mut all);
            all
        };
        for number in 0..10 * CLEAR_AT {
            remember(number);
            let all = remembered();
            assert!(all.iter().all(|each| !each.is_exceeded()), "{all:?}");
        }
        assert!(memory.len() <= CLEAR_AT, "none of them is cached");
        memory.end(gvk);
        assert!(memory.len() > 0, "there is another reconciler");
        memory.end(gvk);
        assert_eq!(memory.len(), 0);
        // A call that is still running.
        remember(0);
        assert_eq!(memory.len(), 0);
    }
}
