//! Writes, as far as they change the ownership of fields.

use std::sync::LazyLock;

use serde_json::Value;

use super::entries::{self, Managed, Manager};
use super::error::ApplyError;
use super::set::Set;
use super::updater::Writer;
use super::{last_applied, typed};
use crate::object::{Object, metadata_mut};
use crate::schema::{self, Schema};

/// The manager of the fields that an object had before its first apply.
pub(super) const BEFORE: &str = "before-first-apply";

/// The manager of `kubectl apply --server-side`.
///
/// It takes over fields from client-side apply.
const KUBECTL: &str = "kubectl";

static NOTHING: LazyLock<Set> = LazyLock::new(Set::default);

/// Fields that no manager owns.
// `NewStripMetaManager`. Among them are fields that left the API long ago, since objects may still have them.
pub(super) static STRIPPED: LazyLock<Set> = LazyLock::new(|| {
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

/// A write, as the tracking of field managers sees it.
///
/// [`new`](Self::new) makes one of a whole object; the other members are for subresources and for kinds with versions.
#[derive(Debug)]
pub struct Write<'a> {
    /// The types of the object's fields.
    pub schema: &'a Schema,
    /// The version in which the object is written.
    pub api_version: &'a str,
    /// The manager that writes.
    pub manager: &'a str,
    /// The part that is written; empty for the object itself.
    pub subresource: &'a str,
    /// The fields that this way of writing cannot change.
    pub ignored: &'a Set,
    /// The time of the write, in RFC 3339.
    pub now: &'a str,
    /// The versions in which the kind is served; empty if all are.
    ///
    /// Managers of other versions are removed.
    pub served: &'a [String],
}

impl<'a> Write<'a> {
    /// Creates a write of a whole object by a manager such as `kubectl`.
    #[must_use]
    pub fn new(schema: &'a Schema, api_version: &'a str, manager: &'a str, now: &'a str) -> Self {
        Self {
            schema,
            api_version,
            manager,
            subresource: "",
            ignored: &NOTHING,
            now,
            served: &[],
        }
    }
}

impl Write<'_> {
    fn manager(&self, applies: bool) -> Manager {
        Manager {
            name: self.manager.to_owned(),
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

    /// Records a creation, an update or a patch in the new object.
    ///
    /// `live` is `None` for a creation. The manager becomes the owner of all fields that differ from `live`; other
    /// managers lose them. If an object does not match its schema, `managedFields` are removed, as by the API server.
    ///
    /// ```
    /// use lariat_apimachinery::managed::Write;
    /// use lariat_apimachinery::{object::Object, schema};
    /// use serde_json::json;
    ///
    /// let schema = schema::builtin("v1", "ConfigMap").expect("it is built in");
    /// let mut object = Object::from_iter([("data".to_owned(), json!({"color": "red"}))]);
    /// Write::new(&schema, "v1", "kubectl", "2026-01-01T00:00:00Z").update(None, &mut object);
    /// let entry = &object["metadata"]["managedFields"][0];
    /// assert_eq!((&entry["manager"], &entry["operation"]), (&json!("kubectl"), &json!("Update")));
    /// ```
    pub fn update(&self, live: Option<&Object>, new: &mut Object) {
        // The order is that of `FieldManager.Update`: read the entries, take them out of the object, then compare, so
        // that the entries themselves never count as a change.
        let managed = self.managed_before(live, new);
        metadata_mut(new).remove("managedFields");
        let Some(mut managed) = managed else {
            return;
        };
        // An object without managers was reset on purpose; only a creation starts to record them again.
        if managed.owners.is_empty() && live.is_some() {
            return;
        }
        let live = self.live(live);
        // Moved, not cloned, for the comparison; it is put back right after.
        let sent = Value::Object(std::mem::take(new));
        let is_known = self.take_over(&mut managed, &live, &sent);
        if let Value::Object(object) = sent {
            *new = object;
        }
        if is_known {
            managed.write(metadata_mut(new));
        }
    }

    /// Removes the fields that a write in another version changed from their owners.
    ///
    /// `live` and `new` are the two states in this version; the owners are those in `object`.
    ///
    /// ```
    /// use lariat_apimachinery::managed::Write;
    /// use lariat_apimachinery::{object::Object, schema};
    /// use serde_json::json;
    ///
    /// let schema = schema::builtin("apps/v1", "Deployment").expect("it is built in");
    /// let spec = |replicas: u32| Object::from_iter([("spec".to_owned(), json!({"replicas": replicas}))]);
    /// let (live, new) = (spec(1), spec(2));
    /// let mut stored = new.clone();
    /// let metadata = json!({"managedFields": [{
    ///     "manager": "ann", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
    ///     "fieldsV1": {"f:spec": {"f:replicas": {}}},
    /// }]});
    /// stored.insert("metadata".to_owned(), metadata);
    /// Write::new(&schema, "apps/v1", "hpa", "2026-01-01T00:00:00Z").disown(&live, &new, &mut stored);
    /// // The other version's write took the replicas from ann, who owns nothing any more.
    /// assert!(stored["metadata"].get("managedFields").is_none());
    /// ```
    pub fn disown(&self, live: &Object, new: &Object, object: &mut Object) {
        let Some(mut managed) = Managed::of(object) else {
            return;
        };
        let typed = self.schema.root();
        let (live, new) = (self.live(Some(live)), self.live(Some(new)));
        if !typed::fits(typed, &live) || !typed::fits(typed, &new) {
            return;
        }
        self.writer(&self.manager(false))
            .disown(&mut managed, &live, &new);
        metadata_mut(object).remove("managedFields");
        managed.write(metadata_mut(object));
    }

    /// Makes the writer own the fields that differ; returns whether both objects fit their types.
    ///
    /// If one does not, nothing is compared and the object is stored without managed fields, as by the API server.
    fn take_over(&self, managed: &mut Managed, live: &Value, new: &Value) -> bool {
        let typed = self.schema.root();
        if !typed::fits(typed, live) || !typed::fits(typed, new) {
            return false;
        }
        // Go meets these owners when it converts to their version, and drops them on `IsMissingVersionError`.
        self.drop_unserved(managed);
        let manager = self.manager(false);
        let takes = self.writer(&manager).update(managed, live, new);
        if takes && let Some(owned) = managed.owners.get_mut(&manager) {
            owned.time = Some(self.now.to_owned());
        }
        managed.cap();
        true
    }

    /// Returns the owners before a write: those that the client sent, or those of the live object.
    fn managed_before(&self, live: Option<&Object>, new: &Object) -> Option<Managed> {
        let of_live = || live.map_or_else(|| Some(Managed::default()), Managed::of);
        // `decodeLiveOrNew`: through a subresource a client cannot set the entries, so those that it sent are ignored.
        if !self.subresource.is_empty() {
            return Some(of_live().unwrap_or_default());
        }
        if entries::is_reset(new) {
            return Some(Managed::default());
        }
        // Clients that do not know the entries drop them on update. That must not disown everyone, so the live ones
        // are used.
        let sent = Managed::of(new).filter(|managed| !managed.owners.is_empty());
        Some(sent.or_else(of_live).unwrap_or_default())
    }

    /// Returns the live object without its entries, which are about the rest.
    ///
    /// One that is not there yet is as Go makes it, whose zeros have no owner.
    fn live(&self, live: Option<&Object>) -> Value {
        let Some(live) = live else {
            let mut empty = Object::new();
            schema::fill_zeros(self.schema.root(), &mut empty);
            return Value::Object(empty);
        };
        // Copied without the entries rather than copied and then removed: they are the larger part of many objects.
        let members = live.iter().map(|(name, value)| {
            let value = match value {
                Value::Object(metadata) if name == "metadata" => {
                    let members = metadata.iter().filter(|(name, _)| *name != "managedFields");
                    Value::Object(
                        members
                            .map(|(name, value)| (name.clone(), value.clone()))
                            .collect(),
                    )
                }
                other => other.clone(),
            };
            (name.clone(), value)
        });
        Value::Object(members.collect())
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
    /// `live` is `None` for a creation. The result contains the new `managedFields`. Fields that the manager applied
    /// before and does not apply now are removed, unless other managers own them. With `force` the manager takes
    /// over conflicting fields.
    ///
    /// # Errors
    ///
    /// - [`ApplyError::Untyped`]: the applied object does not match its schema.
    /// - [`ApplyError::UntypedLive`]: the live object does not match its schema.
    /// - [`ApplyError::Conflicts`]: other managers own fields that it would change, and `force` is not set.
    ///
    /// ```
    /// use lariat_apimachinery::managed::{ApplyError, Write};
    /// use lariat_apimachinery::{object::Object, schema};
    /// use serde_json::json;
    ///
    /// let schema = schema::builtin("v1", "ConfigMap").expect("it is built in");
    /// let of = |color: &str| Object::from_iter([("data".to_owned(), json!({"color": color}))]);
    /// let write = |manager| Write::new(&schema, "v1", manager, "2026-01-01T00:00:00Z");
    /// let live = write("ann").apply(None, &of("red"), false)?;
    /// let conflict = write("bob").apply(Some(&live), &of("blue"), false);
    /// assert!(matches!(conflict, Err(ApplyError::Conflicts(conflicts)) if conflicts[0].path == ".data.color"));
    /// // With force the field is taken over.
    /// let live = write("bob").apply(Some(&live), &of("blue"), true)?;
    /// assert_eq!(live["data"]["color"], "blue");
    /// # Ok::<(), ApplyError>(())
    /// ```
    pub fn apply(
        &self,
        live: Option<&Object>,
        applied: &Object,
        force: bool,
    ) -> Result<Object, ApplyError> {
        let untyped = Value::Object(applied.clone());
        let mut managed = live
            .map_or_else(|| Some(Managed::default()), Managed::of)
            .unwrap_or_default();
        let present = self.live(live);
        let is_unmanaged = managed.owners.is_empty() && live.is_some();
        self.check_typed(&present, &untyped, is_unmanaged)?;
        if is_unmanaged {
            // An object that was written before field management was tracked gets one owner for all it has, so that a
            // first apply conflicts with it instead of taking it over silently.
            let before = Write {
                manager: BEFORE,
                ..*self
            };
            before.take_over(&mut managed, &self.live(None), &present);
        }
        // After the takeover above, whose owner has the version of this request and is always served.
        self.drop_unserved(&mut managed);
        let manager = self.manager(true);
        let before = managed.clone();
        let owned_before = managed.owners.get(&manager);
        let time_before = owned_before.and_then(|owned| owned.time.clone());
        // A closure because `lastAppliedManager` may try twice: first without force, then with it.
        let attempt = |managed: &mut Managed, force| {
            let writer = self.writer(&manager);
            writer.apply(managed, &present, &untyped, force)
        };
        let merged = match attempt(&mut managed, force) {
            // `kubectl apply --server-side` on an object of client-side `kubectl apply`: the same user owns the fields
            // under another manager, and what is still as it was applied last is no conflict.
            Err(conflicts) if self.manager == KUBECTL => {
                let left =
                    last_applied::unexpected(self.schema, self.api_version, live, &conflicts);
                if !left.is_empty() {
                    return Err(ApplyError::Conflicts(left));
                }
                // The failed attempt has already changed the sets.
                managed = before;
                attempt(&mut managed, true)
            }
            outcome => outcome,
        };
        let merged = merged.map_err(ApplyError::Conflicts)?;
        // What changes nothing keeps the time of the last apply, and has none if it is the first.
        let time = if live.is_some() && merged == present {
            time_before
        } else {
            Some(self.now.to_owned())
        };
        let mut object = self.finish_apply(&mut managed, &manager, merged, time);
        if self.manager == KUBECTL {
            // `lastAppliedUpdater`: a later client-side apply then sees what server-side apply has set.
            last_applied::renew(applied, &mut object);
        }
        managed.write(metadata_mut(&mut object));
        Ok(object)
    }

    /// Checks that the live and the applied object match their schema.
    fn check_typed(
        &self,
        present: &Value,
        applied: &Value,
        is_unmanaged: bool,
    ) -> Result<(), ApplyError> {
        let errors = typed::validate_present(self.schema.root(), present);
        let of_live = (!errors.is_empty()).then_some(ApplyError::UntypedLive {
            is_unmanaged,
            errors,
        });
        // Go reads an object without managers before the applied one, and any other after it.
        let (first, last) = if is_unmanaged {
            (of_live, None)
        } else {
            (None, of_live)
        };
        let errors = typed::validate(self.schema.root(), applied);
        let of_applied = (!errors.is_empty()).then_some(ApplyError::Untyped(errors));
        first.or(of_applied).or(last).map_or(Ok(()), Err)
    }

    fn finish_apply(
        &self,
        managed: &mut Managed,
        manager: &Manager,
        merged: Value,
        time: Option<String>,
    ) -> Object {
        strip(managed, manager);
        if let Some(owned) = managed.owners.get_mut(manager) {
            owned.time = time;
        }
        match merged {
            Value::Object(object) => object,
            _ => Object::new(),
        }
    }
}

fn strip(managed: &mut Managed, manager: &Manager) {
    if let Some(owned) = managed.owners.get_mut(manager) {
        owned.set = std::mem::take(&mut owned.set).difference(&STRIPPED);
    }
    managed.retain();
}
