//! Server-side apply, and the managers of fields.
//!
//! Every write accounts for itself in `metadata.managedFields`. An apply merges what its manager wants
//! into the object, removes what the manager wanted before, and is refused where it would change what
//! somebody else wants.
//!
//! Source: `k8s.io/apimachinery/pkg/util/managedfields` and `sigs.k8s.io/structured-merge-diff/v6`.

mod entries;
mod last_applied;
mod path;
mod scale;
mod set;
mod typed;
mod updater;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use serde_json::Value;

use crate::schema::Schema;
use crate::store::Object;
use crate::verbs::metadata_mut;

pub(crate) use entries::{Managed, Manager};
pub(crate) use scale::Scaled;
pub(crate) use set::Set;
pub(crate) use updater::Conflict;
use updater::Writer;

/// The manager of what an object had before anybody applied to it.
const BEFORE: &str = "before-first-apply";

/// The manager of `kubectl apply --server-side`, which takes over from client-side apply.
const KUBECTL: &str = "kubectl";

/// Fields nobody owns.
static STRIPPED: LazyLock<Set> = LazyLock::new(|| {
    Set::of(&[
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.selfLink",
        "metadata.uid",
        "metadata.clusterName",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
    ])
});

/// A write, as far as ownership is concerned.
#[derive(Debug)]
pub(crate) struct Write<'a> {
    pub(crate) schema: &'a Schema,
    /// The version in which the object is written.
    pub(crate) api_version: &'a str,
    /// Who writes.
    pub(crate) name: &'a str,
    /// The part that is written; empty for the object itself.
    pub(crate) subresource: &'a str,
    /// What cannot be changed by this way.
    pub(crate) ignored: &'a Set,
    pub(crate) now: &'a str,
    /// The versions in which the kind is served.
    pub(crate) served: &'a [String],
}

/// Why an apply was refused.
#[derive(Debug, Clone)]
pub(crate) enum Refused {
    /// The applied object has the wrong types.
    Untyped(Vec<String>),
    Conflicts(Vec<Conflict>),
}

impl Write<'_> {
    fn manager(&self, applies: bool) -> Manager {
        Manager {
            name: self.name.to_owned(),
            applies,
            api_version: if applies {
                String::new()
            } else {
                self.api_version.to_owned()
            },
            subresource: self.subresource.to_owned(),
        }
    }

    fn writer<'a>(&'a self, manager: &'a Manager) -> Writer<'a> {
        Writer {
            typed: self.schema.root(),
            manager,
            api_version: self.api_version,
            ignored: self.ignored,
        }
    }

    /// Accounts for a creation, an update or a patch in the new object.
    ///
    /// `live` is `None` for a creation.
    pub(crate) fn update(&self, live: Option<&Object>, new: &mut Object) {
        let managed = self.managed_before(live, new);
        metadata_mut(new).remove("managedFields");
        let Some(mut managed) = managed else {
            return;
        };
        // Where nobody owns anything, owners were dropped on purpose; only a creation begins anew.
        if managed.owners.is_empty() && live.is_some() {
            return;
        }
        let empty = Object::new();
        let live = without_entries(live.unwrap_or(&empty));
        let sent = Value::Object(std::mem::take(new));
        self.take_over(&mut managed, &live, &sent);
        if let Value::Object(object) = sent {
            *new = object;
        }
        managed.write(metadata_mut(new));
    }

    /// Gives the writer what differs.
    fn take_over(&self, managed: &mut Managed, live: &Value, new: &Value) {
        self.drop_unserved(managed);
        let manager = self.manager(false);
        let takes = self.writer(&manager).update(managed, live, new);
        strip(managed, &manager);
        if takes && let Some(owned) = managed.owners.get_mut(&manager) {
            owned.time = Some(self.now.to_owned());
        }
        managed.cap();
    }

    /// Finds the owners before a write: those the client sent, if it did, or those of the live object.
    fn managed_before(&self, live: Option<&Object>, new: &Object) -> Option<Managed> {
        let of_live = || live.map_or_else(|| Some(Managed::default()), Managed::of);
        if !self.subresource.is_empty() {
            return Some(of_live().unwrap_or_default());
        }
        if entries::is_reset(new) {
            return Some(Managed::default());
        }
        let sent = Managed::of(new).filter(|managed| !managed.owners.is_empty());
        Some(sent.or_else(of_live).unwrap_or_default())
    }

    /// Drops owners in versions that are not served any more.
    fn drop_unserved(&self, managed: &mut Managed) {
        let is_served = |version: &String| self.served.is_empty() || self.served.contains(version);
        managed
            .owners
            .retain(|_, owned| is_served(&owned.api_version));
    }

    /// Merges an applied object into the live one.
    ///
    /// `live` is `None` for a creation.
    pub(crate) fn apply(
        &self,
        live: Option<&Object>,
        applied: &Object,
        force: bool,
    ) -> Result<Object, Refused> {
        let untyped = Value::Object(applied.clone());
        let errors = typed::validate(self.schema.root(), &untyped);
        if !errors.is_empty() {
            return Err(Refused::Untyped(errors));
        }
        let managed = live.map_or_else(|| Some(Managed::default()), Managed::of);
        let mut managed = managed.unwrap_or_default();
        let present = without_entries(live.unwrap_or(&Object::new()));
        if managed.owners.is_empty() && live.is_some() {
            let before = Write {
                name: BEFORE,
                subresource: "",
                ignored: &Set::default(),
                ..*self
            };
            before.take_over(&mut managed, &Value::Object(Object::new()), &present);
        }
        self.drop_unserved(&mut managed);
        let manager = self.manager(true);
        let before = managed.clone();
        let attempt = |managed: &mut Managed, force| {
            let writer = self.writer(&manager);
            writer.apply(managed, &present, &untyped, force)
        };
        let merged = match attempt(&mut managed, force) {
            Err(conflicts) if self.name == KUBECTL => {
                let left =
                    last_applied::unexpected(self.schema, self.api_version, live, &conflicts);
                if !left.is_empty() {
                    return Err(Refused::Conflicts(left));
                }
                managed = before;
                attempt(&mut managed, true)
            }
            outcome => outcome,
        };
        let merged = merged.map_err(Refused::Conflicts)?;
        let mut object = self.finish_apply(&mut managed, &manager, merged);
        if self.name == KUBECTL {
            last_applied::renew(live, applied, &mut object);
        }
        managed.write(metadata_mut(&mut object));
        Ok(object)
    }

    fn finish_apply(&self, managed: &mut Managed, manager: &Manager, merged: Value) -> Object {
        strip(managed, manager);
        if let Some(owned) = managed.owners.get_mut(manager) {
            owned.time = Some(self.now.to_owned());
        }
        match merged {
            Value::Object(object) => object,
            _ => Object::new(),
        }
    }
}

fn strip(managed: &mut Managed, manager: &Manager) {
    if let Some(owned) = managed.owners.get_mut(manager) {
        owned.set = owned.set.difference(&STRIPPED);
    }
    managed.retain();
}

/// Returns an object without its entries, for these are about the rest.
fn without_entries(object: &Object) -> Value {
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    Value::Object(object)
}

/// Returns whether two objects differ in more than their version and the times of their entries.
pub(crate) fn differ(old: &Object, new: &Object) -> bool {
    let none = Object::new();
    let (old_metadata, new_metadata) = (metadata_of(old, &none), metadata_of(new, &none));
    differ_outside(old, new, &["metadata"])
        || differ_outside(
            old_metadata,
            new_metadata,
            &["managedFields", "resourceVersion"],
        )
        || entries_differ(
            old_metadata.get("managedFields"),
            new_metadata.get("managedFields"),
        )
}

fn metadata_of<'a>(object: &'a Object, none: &'a Object) -> &'a Object {
    let metadata = object.get("metadata").and_then(Value::as_object);
    metadata.unwrap_or(none)
}

/// Returns whether two objects differ in members that are not among some.
pub(crate) fn differ_outside(old: &Object, new: &Object, outside: &[&str]) -> bool {
    let counts = |member: &String| !outside.contains(&member.as_str());
    let count = |object: &Object| object.keys().filter(|member| counts(member)).count();
    let mut counted = old.iter().filter(|(member, _)| counts(member));
    count(old) != count(new) || counted.any(|(member, value)| new.get(member) != Some(value))
}

/// Returns whether entries differ in more than their times.
fn entries_differ(old: Option<&Value>, new: Option<&Value>) -> bool {
    if old == new {
        return false;
    }
    let (Some(Value::Array(old)), Some(Value::Array(new))) = (old, new) else {
        return true;
    };
    let differs = |(old, new): (&Value, &Value)| match (old, new) {
        (Value::Object(old), Value::Object(new)) => differ_outside(old, new, &["time"]),
        (old, new) => old != new,
    };
    old.len() != new.len() || old.iter().zip(new).any(differs)
}

/// Explains conflicts as the API server does: the message of the whole.
pub(crate) fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        let (manager, path) = (one.manager.shown(), &one.path);
        return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
    }
    let mut lines = Vec::new();
    let mut last = None;
    for conflict in conflicts {
        if last != Some(&conflict.manager) {
            lines.push(format!("conflicts with {}:", conflict.manager.shown()));
            last = Some(&conflict.manager);
        }
        lines.push(format!("- {}", conflict.path));
    }
    format!(
        "Apply failed with {} conflicts: {}",
        conflicts.len(),
        lines.join("\n")
    )
}

impl Conflict {
    /// Explains one of several conflicts.
    pub(crate) fn message(&self) -> String {
        format!("conflict with {}", self.manager.shown())
    }
}

/// Returns the name of a manager that did not give one: the client's, up to the first slash.
///
/// Source: `managerOrUserAgent` in `k8s.io/apiserver/pkg/endpoints/handlers`.
pub(crate) fn manager_name(given: Option<&str>, user_agent: &str) -> String {
    if let Some(given) = given.filter(|given| !given.is_empty()) {
        return given.to_owned();
    }
    let agent = user_agent.split('/').next().unwrap_or_default();
    let agent: String = agent
        .chars()
        .filter(|c| !c.is_control())
        .take(128)
        .collect();
    match agent.is_empty() {
        true => "unknown".to_owned(),
        false => agent,
    }
}
