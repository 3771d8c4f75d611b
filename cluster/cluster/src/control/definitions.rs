//! The lifecycle of CustomResourceDefinitions: names, serving, deletion.
//!
//! Source of the conditions: `k8s.io/apiextensions-apiserver/pkg/controller`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lariat_apimachinery::crd::{CLEANUP, approval_condition};
use lariat_apimachinery::kinds::{Definition, Names, Resource, TableId, qualified, resources_of};
use lariat_apimachinery::object::{Object, finalizers, metadata_mut};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::names::{Accepted, Decision};
use crate::server::Server;
use crate::store::{Ending, Range, Stored, Write};
use crate::strategy::{self, Part, Replacement};
use crate::verbs;
use crate::webhooks;

/// The reason of a CRD that is not established because it cannot be compiled.
const UNSERVABLE: &str = "CannotBeServed";

/// The controller's state for each CRD, by the CRD's name.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    served: BTreeMap<String, Served>,
    /// The time at which each waiting CRD is established, by its uid.
    establishing: HashMap<Arc<str>, Instant>,
}

/// A kind that is served.
#[derive(Debug)]
struct Served {
    table: TableId,
    /// The specification that is served.
    spec: Value,
    /// The names under which it is served, which may not be those it asks for.
    names: Names,
    terminating: Arc<AtomicBool>,
}

/// A CRD that is reconciled.
struct CrdReconcile<'a> {
    server: &'a Server,
    /// The resource of CRDs.
    resource: &'a Resource,
    stored: &'a Arc<Stored>,
    object: Object,
    /// The parsed CRD, unless it cannot be read.
    definition: Result<Definition, String>,
}

impl Definitions {
    /// Moves every CRD one step on.
    ///
    /// A step commits, which leads to the next step.
    pub(super) fn reconcile(&mut self, server: &Server) {
        let catalog = server.kinds.catalog();
        let group = "apiextensions.k8s.io";
        let resource = catalog.resource(group, "v1", "customresourcedefinitions");
        let page = server
            .store
            .range(server.kinds.definitions, &Range::default());
        let (Some(resource), Ok(page)) = (resource, page) else {
            return;
        };
        self.retire_missing(server, &page.objects);
        let uids: HashSet<&str> = page.objects.iter().map(|each| each.uid()).collect();
        self.establishing.retain(|uid, _| uids.contains(&**uid));
        let mut accepted = Accepted::of(&page.objects);
        for stored in &page.objects {
            let object = stored.object();
            let definition = Definition::read(&object).map_err(|error| error.to_string());
            let crd = CrdReconcile {
                server,
                resource,
                stored,
                object,
                definition,
            };
            // A panic about one CRD must not prevent the processing of the others.
            let step = AssertUnwindSafe(|| self.step(&crd, &mut accepted));
            if catch_unwind(step).is_err() {
                let name = stored.key().name();
                tracing::error!(name, "reconciling a CustomResourceDefinition panicked");
                // What is served already stays as it is.
                if !self.served.contains_key(name) {
                    self.refuse(&crd, "the server has a defect; its log says more");
                }
            }
        }
    }

    /// Returns whether a deleted CRD waits for the objects of a table.
    pub(super) fn waits_for(&self, table: TableId) -> bool {
        let mut served = self.served.values();
        served.any(|each| each.table == table && each.terminating.load(Ordering::Relaxed))
    }

    /// Returns when the next CRD is established.
    pub(super) fn due(&self) -> Option<Instant> {
        self.establishing.values().min().copied()
    }

    /// Returns whether a CRD with accepted names is established only later.
    fn is_too_early(&mut self, crd: &CrdReconcile<'_>) -> bool {
        let now = Instant::now();
        let uid = crd.stored.shared_uid();
        let due = self.establishing.entry(Arc::clone(&uid));
        let is_early = *due.or_insert(now + crd.server.time.establishing) > now;
        if !is_early {
            self.establishing.remove(&uid);
        }
        is_early
    }

    fn step(&mut self, crd: &CrdReconcile<'_>, accepted: &mut Accepted) {
        if crd.stored.is_deleting() {
            self.take_away(crd);
        } else if let Some(approval) = crd.new_approval() {
            // The next step follows this write.
            let mut object = crd.object.clone();
            crd.set_condition(&mut object, approval);
            crd.write(Part::Status, object);
        } else if let Err(error) = self.bring_in(crd, accepted) {
            self.refuse(crd, &error);
        }
    }

    /// Reports that a CRD cannot be served, and stops serving it.
    ///
    /// CRDs are checked when they are written, but a data file may have one from before a check.
    fn refuse(&mut self, crd: &CrdReconcile<'_>, error: &str) {
        self.retire(crd.server, crd.stored.key().name());
        if !crd.stored.is_deleting() {
            let message = format!("the CRD cannot be served: {error}");
            crd.write_condition("Established", "False", UNSERVABLE, &message);
        }
    }

    /// Takes the next step of a CRD: accepts names, installs, serves, or updates the kind.
    fn bring_in(&mut self, crd: &CrdReconcile<'_>, accepted: &mut Accepted) -> Result<(), String> {
        let definition = crd.definition.as_ref().map_err(String::clone)?;
        let decision = accepted.decide(crd.stored.key().name(), &definition.spec);
        let is_established = crd.condition("Established") == Some("True");
        let is_accepted = crd.condition("NamesAccepted") == Some("True");
        let accepted = crd.status().get("acceptedNames");
        let is_current = accepted == Some(&decision.names_json());
        let next = match (&decision.conflict, is_established) {
            (None, false) if is_accepted && is_current => {
                // As Go's establishing controller, which gives other servers of a cluster time to see the names.
                if self.is_too_early(crd) {
                    return Ok(());
                }
                self.serve(crd, &decision.names)?;
                established(
                    "True",
                    "InitialNamesAccepted",
                    "the initial names have been accepted",
                )
            }
            (None, false) => established(
                "False",
                "Installing",
                "the initial names have been accepted",
            ),
            (Some(_), false) => established("False", "NotAccepted", "not all names are accepted"),
            // Once established, a CRD stays so: if its new names are taken, the old ones are served on.
            (_, true) => {
                let reason = crd.reason("NamesAccepted");
                if !is_current || reason != decision.condition()["reason"].as_str() {
                    crd.write_names(&decision);
                }
                return self.serve(crd, &decision.names);
            }
        };
        crd.write_status(&decision, &next);
        Ok(())
    }

    /// Serves a CRD as it is at present, under the names it holds.
    fn serve(&mut self, crd: &CrdReconcile<'_>, names: &Names) -> Result<(), String> {
        let name = crd.stored.key().name();
        let spec = crd.object.get("spec").unwrap_or(&Value::Null);
        // A CRD that was going may be back, with a snapshot that was restored.
        let known = self.served.get(name);
        let was_going = known.is_some_and(|served| served.terminating.load(Ordering::Relaxed));
        let returns = was_going && !crd.stored.is_deleting();
        // A generation does not identify a specification: a snapshot may take it back.
        let is_same = |served: &Served| served.spec == *spec && served.names == *names;
        if !returns && known.is_some_and(is_same) {
            return Ok(());
        }
        let table = crd.server.store.table(name);
        // Calls under way hold the flag with the old resources and must see it set later. A kind that returns needs a
        // new one, since the old one is set for good.
        let terminating = known
            .filter(|_| !returns)
            .map(|served| Arc::clone(&served.terminating))
            .unwrap_or_default();
        let changed_at = known.map_or(0, |_| crd.server.store.revision());
        let mut definition = crd.definition.clone()?;
        definition.spec.names = names.clone();
        if !webhooks::IS_BUILT {
            definition.spec.conversion = Value::Null;
        }
        let resources = resources_of(&definition, table, &terminating, changed_at)?;
        // First the kind and then the end of its watches: clients that watch again at once find the new one.
        crd.server.kinds.serve(table, resources);
        if known.is_some() {
            // What watchers see depends on the CRD, so they have to watch again.
            crd.server.store.end_watches(Some(table), Ending::Drained);
        }
        let served = Served {
            table,
            spec: spec.clone(),
            names: names.clone(),
            terminating,
        };
        self.served.insert(name.to_owned(), served);
        Ok(())
    }

    /// Deletes the instances of a CRD, then lets it go.
    fn take_away(&mut self, crd: &CrdReconcile<'_>) {
        if !finalizers(&crd.object).contains(&CLEANUP) {
            return;
        }
        self.establishing.remove(crd.stored.uid());
        // The deletion itself has said that it is pending.
        if crd.reason("Terminating") != Some("InstanceDeletionInProgress") {
            let message = "CustomResource deletion is in progress";
            crd.write_condition("Terminating", "True", "InstanceDeletionInProgress", message);
            return;
        }
        let name = crd.stored.key().name();
        // As Go's handler of custom resources, which serves the versions that a CRD has now, also while it terminates:
        // clients need them to remove finalizers. A cluster may also start with a CRD that is going.
        let mut is_unservable = crd.reason("Established") == Some(UNSERVABLE);
        if crd.condition("Established") == Some("True") {
            let names = self.served.get(name).map(|served| served.names.clone());
            let names = names.unwrap_or_else(|| crd.accepted_names());
            is_unservable = self.serve(crd, &names).is_err() && !self.served.contains_key(name);
        }
        if let Some(served) = self.served.get(name) {
            // Set before the sweep, so that no instance is created behind it; see `Write::terminating`.
            served.terminating.store(true, Ordering::Relaxed);
            if !remove_instances(crd, served.table, true) {
                return;
            }
        } else if is_unservable && !remove_instances(crd, crd.server.store.table(name), false) {
            return;
        }
        self.retire(crd.server, name);
        crd.release();
    }

    /// Stops serving kinds whose CRD is gone.
    fn retire_missing(&mut self, server: &Server, present: &[Arc<Stored>]) {
        let is_missing = |name: &&String| present.iter().all(|each| each.key().name() != **name);
        let missing: Vec<String> = self.served.keys().filter(is_missing).cloned().collect();
        for name in missing {
            self.retire(server, &name);
        }
        // A new controller does not know what its predecessor served.
        let catalog = server.kinds.catalog();
        let custom = catalog.each_table().filter(|each| each.rules.custom);
        for resource in custom {
            let name = qualified(&resource.plural, &resource.group);
            if present.iter().all(|each| each.key().name() != name) {
                withdraw(server, resource.table);
            }
        }
    }

    fn retire(&mut self, server: &Server, name: &str) {
        if let Some(served) = self.served.remove(name) {
            withdraw(server, served.table);
        }
    }
}

/// Stops serving a table, and expires its history.
fn withdraw(server: &Server, table: TableId) {
    // In this order: a client whose watch ends must not be able to watch the kind again.
    server.kinds.serve(table, Vec::new());
    server.store.expire(table);
    server.store.end_watches(Some(table), Ending::Drained);
}

/// Deletes all instances of a kind; returns whether none is left.
///
/// Of a CRD that `can_be_served` and has no served version, instances with finalizers wait until it has one.
fn remove_instances(crd: &CrdReconcile<'_>, table: TableId, can_be_served: bool) -> bool {
    let catalog = crd.server.kinds.catalog();
    let resource = catalog
        .each_table()
        .find(|resource| resource.table == table);
    let page = crd.server.store.range(table, &Range::default());
    let Ok(page) = page else {
        return true;
    };
    let mut is_held = false;
    for stored in &page.objects {
        match resource {
            Some(resource) if !stored.is_deleting() => {
                verbs::remove(crd.server, resource, stored, None);
            }
            Some(_) => {}
            None if can_be_served && !finalizers(&stored.object()).is_empty() => is_held = true,
            // It has no finalizer, or no client could ever remove one.
            None => drop(crd.server.store.commit(Write::new(
                table,
                stored.key(),
                Some(stored.revision()),
                None,
            ))),
        }
    }
    // Instances of a kind that is not served are deleted at once; no change of them would lead to another check.
    if resource.is_none() {
        return !is_held;
    }
    page.objects.is_empty()
}

fn established(status: &str, reason: &str, message: &str) -> Value {
    json!({"type": "Established", "status": status, "reason": reason, "message": message})
}

impl CrdReconcile<'_> {
    fn status(&self) -> &Value {
        self.object.get("status").unwrap_or(&Value::Null)
    }

    fn condition(&self, kind: &str) -> Option<&str> {
        self.of_condition(kind, "status")
    }

    fn reason(&self, kind: &str) -> Option<&str> {
        self.of_condition(kind, "reason")
    }

    fn of_condition(&self, kind: &str, member: &str) -> Option<&str> {
        let mut conditions = self.status().get("conditions")?.as_array()?.iter();
        let condition = conditions.find(|condition| condition["type"] == kind)?;
        condition[member].as_str()
    }

    /// Returns the condition of its approval, unless it has that already.
    fn new_approval(&self) -> Option<Value> {
        let approval = approval_condition(&self.object)?;
        let kind = approval["type"].as_str()?;
        let is_written = ["status", "reason", "message"]
            .iter()
            .all(|member| self.of_condition(kind, member) == approval[*member].as_str());
        Some(approval).filter(|_| !is_written)
    }

    /// Returns the names it was given, or those it asks for if it was given none.
    fn accepted_names(&self) -> Names {
        let status = self.status();
        let stored = status.get("acceptedNames").cloned();
        let accepted = stored.and_then(|names| serde_json::from_value(names).ok());
        let wanted = || {
            self.definition
                .as_ref()
                .ok()
                .map(|definition| definition.spec.names.clone())
        };
        accepted.or_else(wanted).unwrap_or_default()
    }

    fn write_status(&self, decision: &Decision, established: &Value) {
        let mut object = self.with_names(decision);
        self.set_condition(&mut object, established.clone());
        self.write(Part::Status, object);
    }

    fn write_names(&self, decision: &Decision) {
        self.write(Part::Status, self.with_names(decision));
    }

    fn with_names(&self, decision: &Decision) -> Object {
        let mut object = self.object.clone();
        strategy::status_mut(&mut object)["acceptedNames"] = decision.names_json();
        self.set_condition(&mut object, decision.condition());
        object
    }

    fn write_condition(&self, kind: &str, status: &str, reason: &str, message: &str) {
        let mut object = self.object.clone();
        let condition =
            json!({"type": kind, "status": status, "reason": reason, "message": message});
        self.set_condition(&mut object, condition);
        self.write(Part::Status, object);
    }

    fn set_condition(&self, object: &mut Object, condition: Value) {
        strategy::set_condition(object, condition, &self.server.clock.now());
    }

    /// Removes the finalizer that held the CRD.
    fn release(&self) {
        let mut object = self.object.clone();
        let rest: Vec<String> = finalizers(&object)
            .into_iter()
            .filter(|name| *name != CLEANUP)
            .map(str::to_owned)
            .collect();
        metadata_mut(&mut object).insert("finalizers".into(), rest.into());
        self.write(Part::Main, object);
    }

    fn write(&self, part: Part, mut object: Object) {
        strategy::complete(self.resource, &mut object);
        verbs::account_as(
            self.server,
            self.resource,
            part,
            "kube-apiserver",
            Some(&self.object),
            &mut object,
        );
        match strategy::replacement(self.resource, part, &self.object, object) {
            Ok(Replacement::Unchanged) => {}
            // If another client was faster, the next crd sees it.
            Ok(replacement) => {
                drop(verbs::replace(
                    self.server,
                    self.resource,
                    self.stored,
                    &replacement,
                ));
            }
            Err(error) => {
                let name = self.stored.key().name();
                tracing::warn!(
                    name,
                    error = error.message(),
                    "cannot update a CustomResourceDefinition"
                );
            }
        }
    }
}
