//! What was applied and how the API server answered, so that nothing needs to be sent while nothing changes.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{CachedObject, MapperError, RestMapper, Store, Survey};
use lariat_core::{Gvk, ObjectKey, Remembered, ResourceVersion, Uid};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

/// What an operator remembers of the sets of all owners. It is as large as the sets of the owners that exist.
#[derive(Default)]
pub(crate) struct Memory {
    /// By the kind of the owners, as long as there are reconcilers of it.
    owners: Mutex<HashMap<Gvk, OfKind>>,
    /// What the API server served when it was asked last.
    served: AsyncMutex<Option<(Instant, Arc<Survey>)>>,
    /// Kinds of which it was warned that they may not be read, each with the owner for which they were to be.
    forbidden: Mutex<HashMap<Gvk, Uid>>,
    /// Group and kind of all that was applied, for whichever owner.
    kinds: Mutex<HashSet<(String, String)>>,
}

/// From how many owners of a kind on those are cleared away that are gone.
const CLEAR_AT: usize = 64;

/// How many kinds are remembered to have been applied, or not to be read, and how many objects of an owner to be
/// unclear. With more of them every kind counts as applied, and a warning may be repeated.
const MOST: usize = 1024;

/// How long what the API server serves is believed, so that kinds which are gone for good are not looked for in each
/// call.
const SERVED_BELIEVED: Duration = Duration::from_secs(30);

/// The owners of a kind.
#[derive(Default)]
struct OfKind {
    /// How many reconcilers there are.
    reconcilers: usize,
    owners: HashMap<ObjectKey, OfOwner>,
    /// How many owners were left when those that are gone were cleared away last.
    left: usize,
}

struct OfOwner {
    uid: Uid,
    /// By name, each with an object at least.
    sets: HashMap<String, HashMap<(Gvk, ObjectKey), AppliedState>>,
    /// Objects that were not deleted because nothing says who applied them, of which a warning was logged.
    unclear: HashSet<Uid>,
}

/// What was wanted of an object, and its state when it was just so.
#[derive(Clone)]
struct AppliedState {
    wanted: u64,
    uid: Uid,
    version: ResourceVersion,
    content: Content,
}

/// Hashes of an object without what changes with each write.
#[derive(Clone, Copy, Default, PartialEq)]
struct Content {
    /// The metadata, of an object with a generation, which grows with what is neither metadata nor status. There are
    /// kinds for which it does not, so it counts only if there is nothing else to compare.
    metadata: Option<u64>,
    /// The object without its status.
    whole: Option<u64>,
}

/// A state of an object, as the API server answered it or a cache shows it.
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
    /// Notes that there is a reconciler of a kind, or one more.
    pub(crate) fn begin(&self, gvk: &Gvk) {
        let mut kinds = self.owners.lock();
        kinds.entry(gvk.clone()).or_default().reconcilers += 1;
    }

    /// Notes that a reconciler of a kind has ended; with the last one its owners are forgotten.
    pub(crate) fn end(&self, gvk: &Gvk) {
        let mut kinds = self.owners.lock();
        if let Some(of_kind) = kinds.get_mut(gvk) {
            of_kind.reconcilers -= 1;
            if of_kind.reconcilers == 0 {
                kinds.remove(gvk);
            }
        }
    }

    /// Forgets an owner.
    pub(crate) fn forget(&self, gvk: &Gvk, key: &ObjectKey) {
        if let Some(of_kind) = self.owners.lock().get_mut(gvk) {
            of_kind.owners.remove(key);
        }
    }

    /// Adds how much is remembered.
    pub(crate) fn remembered(&self, all: &mut Vec<Remembered>) {
        let kinds = self.owners.lock();
        let mut sizes: Vec<_> = kinds
            .iter()
            .map(|(gvk, of)| (gvk.clone(), of.owners.len(), of.clear_at()))
            .collect();
        drop(kinds);
        sizes.sort_by(|a, b| a.0.cmp(&b.0));
        let owners = |(gvk, owners, most): &(Gvk, usize, usize)| {
            Remembered::new("owners of sets", *owners, *most).of(gvk)
        };
        all.extend(sizes.iter().map(owners));
        let applied = self.kinds.lock().len();
        all.push(Remembered::new("applied kinds", applied, MOST));
        let forbidden = self.forbidden.lock().len();
        all.push(Remembered::new("forbidden kinds", forbidden, MOST));
    }

    /// Notes that a kind may not be read for an owner, and returns whether that is new.
    pub(super) fn is_first_forbidden(&self, gvk: &Gvk, owner: &Uid) -> bool {
        let mut forbidden = self.forbidden.lock();
        let is_first = !forbidden.contains_key(gvk);
        if is_first {
            if forbidden.len() >= MOST {
                forbidden.clear();
            }
            forbidden.insert(gvk.clone(), owner.clone());
        }
        is_first
    }

    /// Notes that a kind was read for an owner. It counts for the owner for which it could not be read first: that of
    /// another, in another namespace, says nothing of it, and it would be warned of in turns.
    pub(super) fn was_read(&self, gvk: &Gvk, owner: &Uid) {
        let mut forbidden = self.forbidden.lock();
        if forbidden.get(gvk) == Some(owner) {
            forbidden.remove(gvk);
        }
    }

    /// Returns whether this process has applied an object of a kind, in whichever version.
    pub(super) fn has_applied(&self, gvk: &Gvk) -> bool {
        let kind = (gvk.group().to_owned(), gvk.kind().to_owned());
        let kinds = self.kinds.lock();
        kinds.len() >= MOST || kinds.contains(&kind)
    }

    /// Returns the kinds the API server serves, which it is not asked for more often than every half a minute.
    pub(super) async fn survey(&self, mapper: &RestMapper) -> Result<Arc<Survey>, MapperError> {
        let mut served = self.served.lock().await;
        if let Some((at, survey)) = &*served
            && at.elapsed() < SERVED_BELIEVED
        {
            return Ok(Arc::clone(survey));
        }
        let survey = Arc::new(mapper.survey().await?);
        *served = Some((Instant::now(), Arc::clone(&survey)));
        Ok(survey)
    }

    /// Returns how many objects are remembered.
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

    /// Returns what is remembered of an owner, nothing at first.
    fn owner(&mut self, owner: &CachedObject, owners: &Store) -> &mut OfOwner {
        // Owners are forgotten when they go, but for those that went while the factory had stopped.
        if self.owners.len() >= self.clear_at() && !self.owners.contains_key(owner.key()) {
            let exists = |key: &ObjectKey, uid: &Uid| {
                let cached = owners.get(key);
                cached.is_some_and(|cached| cached.uid() == uid)
            };
            self.owners
                .retain(|key, of_owner| exists(key, &of_owner.uid));
            self.left = self.owners.len();
        }
        let entry = self.owners.entry(owner.key().clone());
        let of_owner = entry.or_insert_with(|| OfOwner::of(owner));
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
            unclear: HashSet::new(),
        }
    }
}

impl SetMemory<'_> {
    fn with_owner<T>(&self, look: impl FnOnce(&mut OfOwner) -> T) -> T {
        let mut kinds = self.memory.owners.lock();
        match kinds.get_mut(self.owner_gvk) {
            Some(of_kind) => look(of_kind.owner(self.owner, self.owners)),
            // A call that goes on after its reconciler was taken away.
            None => look(&mut OfOwner::of(self.owner)),
        }
    }

    /// Returns what is remembered of an object.
    fn entry(&self, id: &(Gvk, ObjectKey)) -> Option<AppliedState> {
        self.with_owner(|of_owner| of_owner.sets.get(self.set)?.get(id).cloned())
    }

    fn insert(&self, id: &(Gvk, ObjectKey), entry: AppliedState) {
        self.with_owner(|of_owner| {
            let set = of_owner.sets.entry(self.set.to_owned()).or_default();
            set.insert(id.clone(), entry);
        });
    }

    /// Notes that nothing says who applied an object, and returns whether that is new.
    pub(super) fn is_first_unclear(&self, uid: &Uid) -> bool {
        self.with_owner(|of_owner| {
            if of_owner.unclear.len() >= MOST {
                of_owner.unclear.clear();
            }
            of_owner.unclear.insert(uid.clone())
        })
    }

    /// Returns whether an object is still as it was when the same was applied; its status may differ.
    pub(super) fn is_as_applied(
        &self,
        id: &(Gvk, ObjectKey),
        wanted: u64,
        now: &CachedObject,
    ) -> bool {
        let Some(entry) = self.entry(id) else {
            return false;
        };
        if entry.wanted != wanted || entry.uid != *now.uid() {
            return false;
        }
        if entry.version == *now.version() {
            return true;
        }
        // A new status is a new version too.
        if !Content::of_cached(now).is_same(entry.content) {
            return false;
        }
        let version = now.version().clone();
        self.insert(id, AppliedState { version, ..entry });
        true
    }

    /// Returns whether anything is remembered of an object, whatever was wanted of it then.
    pub(super) fn knows(&self, id: &(Gvk, ObjectKey), uid: &Uid) -> bool {
        self.entry(id).is_some_and(|entry| entry.uid == *uid)
    }

    /// Returns whether the set has applied an object under a name.
    pub(super) fn has(&self, id: &(Gvk, ObjectKey)) -> bool {
        self.entry(id).is_some()
    }

    /// Remembers a state that is as wanted, such as the answer to what was applied.
    pub(super) fn remember(&self, id: &(Gvk, ObjectKey), wanted: u64, state: ObjectState<'_>) {
        let entry = AppliedState {
            wanted,
            uid: state.uid.clone(),
            version: state.version.clone(),
            content: Content::of(state.json),
        };
        self.insert(id, entry);
        let kind = (id.0.group().to_owned(), id.0.kind().to_owned());
        let mut kinds = self.memory.kinds.lock();
        if kinds.len() < MOST {
            kinds.insert(kind);
        }
    }

    /// Forgets all objects that are not wanted any more.
    pub(super) fn keep(&self, is_wanted: impl Fn(&(Gvk, ObjectKey)) -> bool) {
        self.with_owner(|of_owner| {
            if let Some(set) = of_owner.sets.get_mut(self.set) {
                set.retain(|id, _| is_wanted(id));
                if set.is_empty() {
                    of_owner.sets.remove(self.set);
                }
            }
        });
    }
}

/// Returns a hash that means something in this process only.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Returns whether two states of an object differ in nothing but the status.
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
            // What is cached is the metadata, and looks like an object without anything else.
            content.whole = None;
        }
        content
    }

    /// Reads an object; nothing of one that does not parse.
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

    fn is_same(self, other: Self) -> bool {
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

    /// A memory with a reconciler of a kind.
    fn memory_of(gvk: &Gvk) -> Memory {
        let memory = Memory::default();
        memory.begin(gvk);
        memory
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
        let gvk = Gvk::new("", "v1", "Pod");
        let (memory, owners) = (memory_of(&gvk), Store::default());
        let owner = object(&pod("owner", "1", "x", "y"));
        let set = SetMemory {
            memory: &memory,
            owner_gvk: &gvk,
            owner: &owner,
            owners: &owners,
            set: "s",
        };
        let id = (gvk.clone(), ObjectKey::namespaced("n", "a"));
        let (uid, version) = (Uid::new("u"), ResourceVersion::new("5"));
        let answer = pod("u", "5", "one", "Pending");
        let json = answer.to_string();
        set.remember(&id, 7, state(&uid, &version, json.as_bytes()));
        let is_as_applied = |wanted, value| set.is_as_applied(&id, wanted, &object(&value));
        assert!(is_as_applied(7, pod("u", "5", "one", "Pending")));
        assert!(is_as_applied(7, pod("u", "6", "one", "Running")));
        assert!(!is_as_applied(8, pod("u", "6", "one", "Running")));
        assert!(!is_as_applied(7, pod("u", "7", "two", "Running")));
        assert!(!is_as_applied(7, pod("v", "6", "one", "Running")));
        // Another owner under the same name knows nothing of it.
        let recreated = object(&pod("again", "9", "x", "y"));
        let set = SetMemory {
            owner: &recreated,
            ..set
        };
        assert!(!set.is_as_applied(&id, 7, &object(&pod("u", "6", "one", "Running"))));
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
        assert!(memory.is_first_forbidden(&gvk, &one));
        assert!(!memory.is_first_forbidden(&gvk, &other));
        memory.was_read(&gvk, &other);
        assert!(!memory.is_first_forbidden(&gvk, &one));
        memory.was_read(&gvk, &one);
        assert!(memory.is_first_forbidden(&gvk, &one));
    }

    #[test]
    fn owners_and_objects_are_forgotten() {
        let gvk = Gvk::new("", "v1", "Pod");
        let (memory, owners) = (memory_of(&gvk), Store::default());
        let owner = object(&pod("owner", "1", "x", "y"));
        let set = SetMemory {
            memory: &memory,
            owner_gvk: &gvk,
            owner: &owner,
            owners: &owners,
            set: "s",
        };
        for name in ["a", "b"] {
            let id = (gvk.clone(), ObjectKey::cluster(name));
            let (uid, version) = (Uid::new("u"), ResourceVersion::new("1"));
            set.remember(&id, 7, state(&uid, &version, b"{}"));
        }
        assert_eq!(memory.len(), 2);
        set.keep(|(_, key)| key.name() == "a");
        assert_eq!(memory.len(), 1);
        memory.forget(&gvk, owner.key());
        assert_eq!(memory.len(), 0);
    }

    #[test]
    fn owners_are_remembered_as_long_as_they_exist_and_have_reconcilers() {
        let gvk = Gvk::new("", "v1", "Pod");
        let (memory, owners) = (memory_of(&gvk), Store::default());
        memory.begin(&gvk);
        let remember = |number: usize| {
            let mut owner = pod(&format!("u{number}"), "1", "x", "y");
            owner["metadata"]["name"] = format!("o{number}").into();
            let owner = object(&owner);
            let set = SetMemory {
                memory: &memory,
                owner_gvk: &gvk,
                owner: &owner,
                owners: &owners,
                set: "s",
            };
            let id = (gvk.clone(), ObjectKey::cluster("a"));
            let (uid, version) = (Uid::new("u"), ResourceVersion::new("1"));
            set.remember(&id, 7, state(&uid, &version, b"{}"));
        };
        let remembered = || {
            let mut all = Vec::new();
            memory.remembered(&mut all);
            all
        };
        for number in 0..10 * CLEAR_AT {
            remember(number);
            let all = remembered();
            assert!(all.iter().all(|each| !each.is_exceeded()), "{all:?}");
        }
        assert!(memory.len() <= CLEAR_AT, "none of them is cached");
        memory.end(&gvk);
        assert!(memory.len() > 0, "there is another reconciler");
        memory.end(&gvk);
        assert_eq!(memory.len(), 0);
        // A call that is still under way.
        remember(0);
        assert_eq!(memory.len(), 0);
    }
}
