//! Finds the objects of a set that are not wanted any more, and deletes one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lariat_cache::{CachedObject, Query};
use lariat_core::{Gvk, LabelSelector, ObjectKey, ResourceKind, Scope, Uid};

use super::error::{ObjectError, ObjectFailure};
use super::kinds::{EVERYWHERE, Extent};
use super::marks::Found;
use super::meta::{Existing, Meta};
use super::order::rank;
use super::report::Applied;
use super::resolve::{Target, identity};
use super::run::Run;
use super::send::Endpoint;
use super::set::Apply;

/// The number of attempts of a deletion while the object changes.
const TRIES: usize = 4;

/// An object with the labels of the set that is not wanted.
pub(super) struct Surplus {
    pub(super) resource: ResourceKind,
    pub(super) key: ObjectKey,
    /// The metadata, if it was listed.
    meta: Option<Meta>,
    /// The number of steps before that of the object.
    pub(super) order: usize,
    is_kept: bool,
}

/// The objects to prune.
#[derive(Default)]
pub(super) struct Surplusses {
    pub(super) objects: Vec<Surplus>,
    /// Objects that are never deleted.
    pub(super) kept: Vec<Surplus>,
    pub(super) failures: Vec<ObjectFailure>,
    /// Kinds that are not served, of which it is unknown whether there are objects.
    pub(super) unserved: BTreeSet<Gvk>,
    /// Kinds that may not be read, of which it is unknown whether there are objects.
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

/// The search for members of a kind.
#[derive(Clone, Copy)]
struct Search<'a> {
    /// The kind would be forgotten without members, so an empty cache is not sufficient.
    is_leaving: bool,
    /// The recorded extent.
    known: &'a Extent,
    /// The extent of the wanted objects.
    wanted: &'a Extent,
}

/// A namespace to search, or all of them.
struct Area {
    namespace: Option<String>,
    /// An empty cache is not sufficient.
    is_leaving: bool,
}

/// The result for an object that is not wanted.
pub(super) enum Pruned {
    /// It is being deleted.
    Going,
    /// It does not exist any more.
    Gone,
    /// It is never deleted.
    Kept,
    /// It was not deleted; with its uid.
    LeftAlone(Whose, Uid),
}

impl Run<'_> {
    pub(super) fn leave_alone(
        &self,
        surplus: &Surplus,
        whose: Whose,
        uid: &Uid,
        applied: &mut Applied,
    ) {
        let (gvk, key) = (surplus.resource.gvk(), &surplus.key);
        let set = &self.set.marks.set;
        if whose == Whose::Unknown && self.set.remembered().is_first_unclear(uid) {
            tracing::warn!(
                %gvk, %key, set,
                "not deleted: it has the labels of the set, but nothing says who applied it; delete it, or take its \
                 label \"lariat.dev/owner-uid\" away"
            );
        } else {
            tracing::debug!(%gvk, %key, set, "not deleted: nothing says that the operator applied it");
        }
        applied.leave_alone(gvk, key, whose == Whose::Others);
    }

    /// Returns the objects that have the labels of the set and are not wanted.
    pub(super) async fn surplus(&self, known: &Extent, targets: &[Target]) -> Surplusses {
        let wanted: BTreeSet<_> = targets.iter().map(Target::identity).collect();
        let mut surplus = Surplusses::default();
        let extent = self.extent_of(targets);
        for gvk in self.kinds_to_prune(&known.kinds, targets) {
            let search = Search {
                is_leaving: known.kinds.contains(&gvk) && !is_wanted(&gvk, targets),
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
                // No object of the kind can be reached, so none can be deleted.
                Err(error) if is_unserved(&error) => {
                    surplus.unserved.insert(gvk);
                }
                Err(error) if self.is_lost(&gvk, &error, targets) => {
                    surplus.forbidden.insert(gvk);
                }
                Err(error) => {
                    let key = None;
                    surplus.failures.push(ObjectFailure { gvk, key, error });
                }
            }
        }
        // Within a step the kinds keep their order.
        surplus
            .objects
            .sort_by_key(|each| std::cmp::Reverse(each.order));
        surplus
    }

    /// Returns the kinds to search, in reverse order. One version of a kind suffices.
    fn kinds_to_prune(&self, known: &BTreeSet<Gvk>, targets: &[Target]) -> Vec<Gvk> {
        let wanted = targets.iter().map(Target::gvk);
        let all = wanted.chain(&self.set.options.prunes).chain(known);
        let mut kinds: BTreeMap<(&str, &str), &Gvk> = BTreeMap::new();
        for gvk in all {
            kinds.entry((gvk.group(), gvk.kind())).or_insert(gvk);
        }
        let mut kinds: Vec<Gvk> = kinds.into_values().cloned().collect();
        kinds.sort_by_key(|gvk| std::cmp::Reverse(rank(gvk)));
        kinds
    }

    /// Returns whether an error concerns a dropped kind that may not be read any more.
    ///
    /// The set does not have the kind any more and nothing in the program declares it: a release that dropped it
    /// dropped the permission too. This is logged as a warning, and is no reason to fail forever. For a kind that the
    /// program does apply, only not for this owner at the moment, it is a failure.
    pub(super) fn is_lost(&self, gvk: &Gvk, error: &ObjectError, targets: &[Target]) -> bool {
        let Apply {
            operator,
            memory,
            owner,
            options,
            ..
        } = self.set;
        let is_said = is_wanted(gvk, targets)
            || options.prunes.contains(gvk)
            || memory.has_applied(gvk)
            || operator.needs.has_deletions_of(gvk);
        let is_lost = !is_said && error.is_reading_forbidden();
        if is_lost && memory.is_first_forbidden(gvk, owner.uid()) {
            let (set, error) = (&self.set.marks.set, lariat_core::describe(error));
            tracing::warn!(
                kind = %gvk, set, error,
                "objects the set once had are neither looked for nor deleted: a rule for `delete`, `get` and `list` is \
                 missing; say `Reconciler::prunes` for the kind"
            );
        }
        is_lost
    }

    /// Returns the objects of a kind that have the labels of the set.
    ///
    /// If the version is not served any more, another one shows the same objects.
    async fn members(&self, gvk: &Gvk, search: Search<'_>) -> Result<Vec<Surplus>, ObjectError> {
        let clients = self.set.operator.caches.clients();
        let members = match clients.for_kind(gvk).resource().await {
            Ok(resource) => self.members_of(resource, search).await,
            Err(error) => Err(error.into()),
        };
        let error = match members {
            Err(error) if is_unserved(&error) => error,
            members => return members,
        };
        let survey = self.set.memory.survey(clients.mapper()).await?;
        let is_it = |kind: &&ResourceKind| {
            let other = kind.gvk();
            other.group() == gvk.group() && other.kind() == gvk.kind() && other != gvk
        };
        match survey.kinds.iter().find(is_it) {
            Some(resource) => self.members_of(resource.clone(), search).await,
            // A kind that is missing in the answer may be served all the same.
            None if survey.is_unanswered(gvk) => Err(ObjectError::GroupUnanswered),
            None => Err(error),
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

    /// Returns where members of a kind can be: where they are wanted, and wherever any were recorded.
    ///
    /// For a kind whose cache is restricted to namespaces, no other ones are searched: that would take a request in
    /// each call, and a permission that is not granted.
    fn areas(&self, resource: &ResourceKind, search: Search<'_>) -> Vec<Area> {
        let everywhere = Area {
            namespace: None,
            is_leaving: search.is_leaving,
        };
        if resource.scope() == Scope::Cluster {
            return vec![everywhere];
        }
        let (known, wanted) = (&search.known.namespaces, &search.wanted.namespaces);
        let leaving: BTreeSet<&str> = known.difference(wanted).map(|name| &**name).collect();
        let mut places = self.usual_places(resource);
        let is_everywhere = places.is_empty() || search.known.is_everywhere();
        if is_everywhere {
            // An empty cache of all namespaces is not sufficient for these.
            places.clone_from(&leaving.iter().map(|name| (*name).to_owned()).collect());
            places.retain(|name| name != EVERYWHERE);
        } else {
            places.extend(known.union(wanted).cloned());
        }
        let named = places.into_iter().map(|namespace| Area {
            is_leaving: search.is_leaving || leaving.contains(&*namespace),
            namespace: Some(namespace),
        });
        let everywhere = is_everywhere.then_some(everywhere);
        everywhere.into_iter().chain(named).collect()
    }

    /// Returns the namespaces in which members of a kind are searched, whatever is recorded; empty means all.
    fn usual_places(&self, resource: &ResourceKind) -> BTreeSet<String> {
        let Apply {
            operator, options, ..
        } = self.set;
        let owner = self.set.owner.key().namespace();
        let mut places = options.places.clone();
        if let Some(namespace) = owner.filter(|_| options.owned) {
            places.insert(namespace.to_owned());
            return places;
        }
        // Whether it is synced or not: the namespaces that may be listed are the same.
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

    /// Returns the members in a namespace, or in all.
    async fn members_in(
        &self,
        resource: &ResourceKind,
        area: &Area,
    ) -> Result<Vec<Surplus>, ObjectError> {
        let namespace = area.namespace.as_deref();
        let selector = self.set.marks.selector();
        if let Some(informer) = self.cache_of(resource, namespace)
            && let Ok(labels) = selector.parse::<LabelSelector>()
        {
            let query = namespace.map_or_else(Query::all, Query::in_namespace);
            let members = informer.store().select(&query.labels(labels));
            let surplus = |each: &Arc<CachedObject>| {
                let key = each.key().clone();
                Surplus::new(resource, key, &Found::from(&**each), None)
            };
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

    /// Deletes an object, if it is the set's.
    pub(super) async fn prune_object(&self, surplus: &Surplus) -> Result<Pruned, ObjectError> {
        let endpoint = self.endpoint(&surplus.resource, &surplus.key);
        let name = surplus.key.name();
        let mut listed = surplus.meta.clone();
        for _ in 0..TRIES {
            let meta = match listed.take() {
                Some(meta) => Some(meta),
                None => endpoint.metadata(name).await?,
            };
            let Some(meta) = meta else {
                return Ok(Pruned::Gone);
            };
            if Found::from(&meta).is_kept {
                return Ok(Pruned::Kept);
            }
            match self.whose(&meta) {
                Whose::Ours if meta.deletion_timestamp.is_some() => return Ok(Pruned::Going),
                Whose::Ours => {}
                // Its labels were removed meanwhile.
                _ if !self.is_member(&meta) => return Ok(Pruned::Gone),
                whose => return Ok(Pruned::LeftAlone(whose, Uid::new(&meta.uid))),
            }
            if endpoint.delete(name, meta.state()).await? {
                return Ok(Pruned::Going);
            }
        }
        Err(ObjectError::Changing)
    }

    fn is_member(&self, meta: &Meta) -> bool {
        self.is_ours(&Found::from(meta))
    }

    /// Returns whose an object with the labels of the set is.
    ///
    /// Copies of objects have the labels of the original. It is the set's by its labels, its controller, and because
    /// this operator applied it.
    fn whose(&self, meta: &Meta) -> Whose {
        let controller = Existing::from(meta).controller;
        let owner = self.set.owner.uid();
        if !self.is_member(meta) || controller.is_some_and(|(_, uid)| uid != *owner) {
            return Whose::Others;
        }
        let name = &self.set.operator.name;
        if meta.is_applied_by(name) {
            return Whose::Ours;
        }
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

    /// Returns whether an object is the set's and still exists.
    pub(super) async fn would_delete(&self, surplus: &Surplus) -> Result<bool, ObjectError> {
        let meta = match &surplus.meta {
            Some(meta) => Some(meta.clone()),
            None => {
                let endpoint = self.endpoint(&surplus.resource, &surplus.key);
                endpoint.metadata(surplus.key.name()).await?
            }
        };
        Ok(meta.is_some_and(|meta| self.may_delete(&meta)))
    }
}

/// Whose an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    /// Known to be others'.
    Others,
    /// It has the labels of the set, and it is unknown who created it: its managed fields were removed.
    Unknown,
}

/// Returns whether the set has objects of a kind.
fn is_wanted(gvk: &Gvk, targets: &[Target]) -> bool {
    targets.iter().any(|each| *each.gvk() == *gvk)
}

fn is_unserved(error: &ObjectError) -> bool {
    match error {
        ObjectError::Mapper(error) => error.is_unknown(),
        error => error.has_code(404),
    }
}
