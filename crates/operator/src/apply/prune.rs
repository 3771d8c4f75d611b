//! Finds the members of a set that are no longer wanted, and deletes one of them.
//!
//! The search goes through the kinds of the wanted objects, the kinds given by [`Apply::prunes`], and the kinds
//! recorded on the owner, each in the namespaces where members can be. It reads a cache where that is certain to be
//! complete, and otherwise lists by the set's labels.
//!
//! Deletion is careful, because labels can be copied and caches can be stale. The object is read, and it must be the
//! set's by its labels, by its controller, and by its managed fields. The deletion has that uid and resource version as
//! preconditions, so that only this very state is deleted; if the object has changed, it is read and checked again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lariat_cache::{CachedObject, Query};
use lariat_core::{Gvk, LabelSelector, ObjectKey, ResourceKind, Scope, Uid};

use super::error::{ObjectError, ObjectFailure};
use super::kinds::{EVERYWHERE, Extent};
use super::kinds_searched::is_wanted;
use super::marks::Found;
use super::meta::{Existing, Meta};
use super::order::rank;
use super::report::Applied;
use super::resolve::{Target, identity};
use super::run::Run;
use super::send::Endpoint;
use super::set::Apply;

/// The number of attempts to delete an object that keeps changing.
const TRIES: usize = 4;

/// The number of namespaces to be dropped from the record from which all are searched at once.
const MOST_PLACES: usize = 8;

/// An object that has the labels of the set and is not wanted.
pub(super) struct Surplus {
    pub(super) resource: ResourceKind,
    pub(super) key: ObjectKey,
    /// The metadata, if the object was listed rather than read from a cache.
    meta: Option<Meta>,
    /// The number of steps before the object's own.
    pub(super) order: usize,
    is_kept: bool,
}

/// The result of the search for objects that are no longer wanted.
#[derive(Default)]
pub(super) struct SurplusSet {
    pub(super) objects: Vec<Surplus>,
    /// Objects that are never deleted.
    pub(super) kept: Vec<Surplus>,
    pub(super) failures: Vec<ObjectFailure>,
    /// Kinds that are not served; they may still have objects.
    pub(super) unserved: BTreeSet<Gvk>,
    /// Recorded kinds beyond the number that is searched; they may still have objects.
    pub(super) unsearched: BTreeSet<Gvk>,
    /// Kinds that may not be read; they may still have objects.
    pub(super) forbidden: BTreeSet<Gvk>,
}

impl Surplus {
    fn new(resource: &ResourceKind, key: ObjectKey, found: &Found, meta: Option<Meta>) -> Self {
        Self {
            resource: resource.clone(),
            key,
            meta,
            order: found.order,
            is_kept: found.is_kept,
        }
    }

    pub(super) fn rank(&self) -> usize {
        rank(self.resource.gvk())
    }

    pub(super) fn id(&self) -> (Gvk, ObjectKey) {
        (self.resource.gvk().clone(), self.key.clone())
    }
}

/// The parameters of the search for members of a kind.
#[derive(Clone, Copy)]
struct Search<'a> {
    /// Whether the kind is about to be dropped from the record.
    ///
    /// An empty result then has lasting effect, so an empty cache is not sufficient: it may be stale.
    is_leaving: bool,
    /// Whether nothing in the program deals with the kind: the record alone names it.
    is_undeclared: bool,
    /// The recorded extent of the set.
    known: &'a Extent,
    /// The extent of the wanted objects.
    wanted: &'a Extent,
}

/// A namespace to search, or all namespaces.
struct Area {
    namespace: Option<String>,
    /// Whether an empty cache is not sufficient; see [`Search::is_leaving`].
    is_leaving: bool,
    /// Whether it stands for namespaces of which any may be missing in the cache.
    is_listed: bool,
}

/// The result of pruning one object.
pub(super) enum Pruned {
    /// It is being deleted.
    Deleting,
    /// It does not exist any more.
    Absent,
    /// It is never deleted.
    Kept,
    /// It was not deleted, because it is not known to be the set's; with its uid.
    Skipped(Whose, Uid),
}

impl Run<'_> {
    /// Records and logs an object that is not deleted because it may belong to others.
    pub(super) fn leave_alone(
        &self,
        surplus: &Surplus,
        whose: Whose,
        uid: &Uid,
        applied: &mut Applied,
    ) {
        let (gvk, key) = (surplus.resource.gvk(), &surplus.key);
        let set = &self.set.marks.set;
        // A warning, because a finalizer of the owner cannot finish while such an object exists.
        if whose == Whose::Unknown && self.set.memory().is_first_unclear(uid) {
            tracing::warn!(
                %gvk, %key, set,
                "not deleted: it has the labels of the set, but its managed fields do not show who applied it; delete it, \
                 or remove its label \"lariat.dev/owner-uid\""
            );
        } else {
            tracing::debug!(%gvk, %key, set, "not deleted: this operator did not apply it");
        }
        applied.leave_alone(gvk, key, whose == Whose::Others);
    }

    /// Returns the objects that have the labels of the set and are not wanted.
    pub(super) async fn surplus(&self, known: &Extent, targets: &[Target]) -> SurplusSet {
        let wanted: BTreeSet<_> = targets.iter().map(Target::identity).collect();
        // Compared by group, kind and name without the version: an object that is wanted in another version is the same
        // object.
        let mut surplus = SurplusSet::default();
        let extent = self.extent_of(targets);
        let kinds = self.kinds_to_prune(&known.kinds, targets).await;
        surplus.unsearched = kinds.unsearched;
        for gvk in kinds.searched {
            let search = Search {
                is_leaving: known.kinds.contains(&gvk) && !is_wanted(&gvk, targets),
                is_undeclared: kinds.undeclared.contains(&gvk),
                known,
                wanted: &extent,
            };
            match self.members(&gvk, search).await {
                Ok(members) => {
                    let is_surplus = |each: &Surplus| {
                        !wanted.contains(&identity(each.resource.gvk(), &each.key))
                    };
                    let members = members.into_iter().filter(is_surplus);
                    let (kept, others): (Vec<_>, Vec<_>) = members.partition(|each| each.is_kept);
                    surplus.kept.extend(kept);
                    surplus.objects.extend(others);
                }
                // Its objects may have been deleted with the CRD, or still be stored.
                Err(error) if is_unserved(&error) => {
                    surplus.unserved.insert(gvk);
                }
                Err(error) if self.is_dropped_kind(&gvk, &error, targets) => {
                    surplus.forbidden.insert(gvk);
                }
                Err(error) => {
                    let key = None;
                    surplus.failures.push(ObjectFailure { gvk, key, error });
                }
            }
        }
        // Later steps first. The sort is stable, so the kinds of a step keep their order.
        surplus
            .objects
            .sort_by_key(|each| std::cmp::Reverse(each.order));
        surplus
    }

    /// Returns the objects of a kind that have the labels of the set.
    ///
    /// If the version is no longer served, another served version of the kind is searched.
    async fn members(&self, gvk: &Gvk, search: Search<'_>) -> Result<Vec<Surplus>, ObjectError> {
        // One discovery for all of them: looked up one by one, each group would take requests of its own.
        if search.is_undeclared {
            return self.members_of(self.served(gvk).await?, search).await;
        }
        let clients = self.set.operator.caches.clients();
        // The recorded version may have been removed from the CRD since. Its objects are still there, in another
        // version.
        let members = match clients.for_kind(gvk).resource().await {
            Ok(resource) => self.members_of(resource, search).await,
            Err(error) => Err(error.into()),
        };
        let error = match members {
            Err(error) if is_unserved(&error) => error,
            members => return members,
        };
        match self.served(gvk).await {
            Ok(resource) if resource.gvk() != gvk => self.members_of(resource, search).await,
            Ok(_) | Err(ObjectError::Unserved) => Err(error),
            Err(error) => Err(error),
        }
    }

    async fn members_of(
        &self,
        resource: ResourceKind,
        search: Search<'_>,
    ) -> Result<Vec<Surplus>, ObjectError> {
        let mut members = BTreeMap::new();
        for area in self.areas(&resource, search) {
            for member in self.members_in(&resource, &area).await? {
                members.insert(member.key.clone(), member);
            }
        }
        Ok(members.into_values().collect())
    }

    /// Returns the namespaces in which members of a kind can be.
    ///
    /// These are the namespaces of wanted objects, and all that were recorded. If the cache of a kind is restricted to
    /// namespaces, others are not searched: that would take a request in each call, and a permission that may not be
    /// granted.
    fn areas(&self, resource: &ResourceKind, search: Search<'_>) -> Vec<Area> {
        let everywhere = Area {
            namespace: None,
            is_leaving: search.is_leaving,
            is_listed: false,
        };
        if resource.scope() == Scope::Cluster {
            return vec![everywhere];
        }
        let (known, wanted) = (&search.known.namespaces, &search.wanted.namespaces);
        // One list of all namespaces, if there are many to search and it may be requested.
        let may_list_all = search.is_undeclared
            || self
                .informer(resource.gvk())
                .is_some_and(|informer| informer.selection().namespaces().is_empty());
        if may_list_all && known.difference(wanted).count() > MOST_PLACES {
            return vec![Area {
                namespace: None,
                is_leaving: true,
                is_listed: true,
            }];
        }
        let leaving: BTreeSet<&str> = known.difference(wanted).map(|name| &**name).collect();
        let mut places = self.usual_places(resource);
        let is_everywhere = places.is_empty() || search.known.is_everywhere();
        if is_everywhere {
            // The cache of all namespaces covers these too, but it may be stale. A namespace that is about to be
            // dropped from the record is searched by itself, on the API server if the cache has nothing in it.
            places.clone_from(&leaving.iter().map(|name| (*name).to_owned()).collect());
            places.retain(|name| name != EVERYWHERE);
        } else {
            places.extend(known.union(wanted).cloned());
        }
        let named = places.into_iter().map(|namespace| Area {
            is_leaving: search.is_leaving || leaving.contains(&*namespace),
            namespace: Some(namespace),
            is_listed: false,
        });
        let everywhere = is_everywhere.then_some(everywhere);
        everywhere.into_iter().chain(named).collect()
    }

    /// Returns the namespaces to search whatever is recorded; none means all.
    fn usual_places(&self, resource: &ResourceKind) -> BTreeSet<String> {
        let Apply {
            operator, options, ..
        } = self.set;
        // An owned object must be in the namespace of a namespaced owner, so no other namespace is searched by default.
        let owner = self.set.owner.key().namespace();
        let mut places = options.places.clone();
        if let Some(namespace) = owner.filter(|_| options.owned) {
            places.insert(namespace.to_owned());
            return places;
        }
        // The cache need not be synced: only its selection is used here, which says which namespaces may be listed.
        let informer = operator.caches.existing(resource.gvk());
        let selection = informer.map(|informer| informer.selection());
        let selected: BTreeSet<String> = selection
            .iter()
            .flat_map(|each| each.namespaces())
            .map(|name| (**name).to_owned())
            .collect();
        if selected.is_empty() {
            return selected;
        }
        places.extend(selected);
        places
    }

    /// Returns the members in one namespace, or in all.
    async fn members_in(
        &self,
        resource: &ResourceKind,
        area: &Area,
    ) -> Result<Vec<Surplus>, ObjectError> {
        let namespace = area.namespace.as_deref();
        let selector = self.set.marks.selector();
        if !area.is_listed
            && let Some(informer) = self.cache_of(resource, namespace)
            && let Ok(labels) = selector.parse::<LabelSelector>()
        {
            let query = namespace.map_or_else(Query::all, Query::in_namespace);
            let members = informer.store().select(&query.labels(labels));
            let surplus = |each: &Arc<CachedObject>| {
                let key = each.key().clone();
                Surplus::new(resource, key, &Found::from(&**each), None)
            };
            // Members in the cache show at least that the kind and namespace must stay recorded. An empty cache proves
            // nothing if the record is about to be dropped.
            if !members.is_empty() || !area.is_leaving {
                return Ok(members.iter().map(surplus).collect());
            }
        }
        let endpoint = Endpoint::within(&self.set.client, resource, namespace);
        let members = endpoint.list(&selector).await?;
        let Apply { memory, owner, .. } = self.set;
        memory.was_read(resource.gvk(), owner.uid());
        let surplus = |meta: Meta| {
            let namespace = meta.namespace.as_deref().unwrap_or_default();
            let key = ObjectKey::namespaced(namespace, &meta.name);
            Surplus::new(resource, key, &Found::from(&meta), Some(meta))
        };
        Ok(members.into_iter().map(surplus).collect())
    }

    /// Deletes an object if it is the set's.
    pub(super) async fn prune_object(&self, surplus: &Surplus) -> Result<Pruned, ObjectError> {
        let endpoint = self.endpoint(&surplus.resource, &surplus.key);
        let name = surplus.key.name();
        // The first attempt uses the metadata of the list. Each later one reads the object again, because the deletion
        // was refused for a state that no longer exists.
        let mut listed = surplus.meta.clone();
        for _ in 0..TRIES {
            let meta = match listed.take() {
                Some(meta) => Some(meta),
                None => endpoint.metadata(name).await?,
            };
            let Some(meta) = meta else {
                return Ok(Pruned::Absent);
            };
            // Read from the object itself: the state in which it was found may be older than the label.
            if Found::from(&meta).is_kept {
                return Ok(Pruned::Kept);
            }
            match self.whose(&meta) {
                Whose::Ours if meta.deletion_timestamp.is_some() => return Ok(Pruned::Deleting),
                Whose::Ours => {}
                // A client removed the labels since the search, so the object is no longer a member.
                _ if !self.is_member(&meta) => return Ok(Pruned::Absent),
                whose => return Ok(Pruned::Skipped(whose, Uid::new(&meta.uid))),
            }
            // `false` means that the object has changed since it was checked.
            if endpoint.delete(name, meta.state()).await? {
                return Ok(Pruned::Deleting);
            }
        }
        Err(ObjectError::Changing)
    }

    fn is_member(&self, meta: &Meta) -> bool {
        self.is_ours(&Found::from(meta))
    }

    /// Returns whether an object with the labels of the set is the set's.
    ///
    /// A copy of an object carries the labels of the original. So an object counts as the set's only if no other owner
    /// controls it, and if its managed fields show that this operator applied it.
    fn whose(&self, meta: &Meta) -> Whose {
        let controller = Existing::from(meta).controller;
        let owner = self.set.owner.uid();
        if !self.is_member(meta) || controller.is_some_and(|(_, uid)| uid != *owner) {
            return Whose::Others;
        }
        if meta.is_applied_by_any(&self.managers()) {
            return Whose::Ours;
        }
        // The managed fields are complete if they go back to the creation of the object. Then this operator has never
        // applied it. Otherwise another client removed them, and nothing is certain.
        if meta.is_managed_since_creation() {
            Whose::Others
        } else {
            Whose::Unknown
        }
    }

    /// Returns whether an object is known to be the set's.
    pub(super) fn may_delete(&self, meta: &Meta) -> bool {
        self.whose(meta) == Whose::Ours
    }
}

/// The owner of an object with the labels of the set, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    /// Known to belong to others.
    Others,
    /// Unknown, because the managed fields were removed.
    Unknown,
}

fn is_unserved(error: &ObjectError) -> bool {
    match error {
        ObjectError::Mapper(error) => error.is_unknown(),
        ObjectError::Unserved => true,
        error => error.has_code(404),
    }
}
