//! The owners of fields, for `metadata.managedFields`.

use std::sync::Arc;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::{Catalog, Resource};
use lariat_apimachinery::managed::{self, ApplyError, Set};
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_apimachinery::schema::Schema;
use serde_json::json;

use crate::server::Server;
use crate::status::ApiError;
use crate::strategy::{self, Part, view};
use crate::verbs::call::Call;

/// The field manager of a write, with the version, time and catalog of its entry.
#[derive(Debug)]
pub(crate) struct Writer {
    name: String,
    subresource: String,
    api_version: String,
    now: String,
    catalog: Arc<Catalog>,
    ignored: Set,
}

impl Writer {
    /// Finds out who sends a request.
    pub(super) fn of(call: &Call) -> Self {
        let given = call.query.text("fieldManager");
        let name = managed::manager_name(given, &call.user_agent);
        let subresource = call.target.subresource.clone();
        Self {
            subresource: subresource.unwrap_or_default(),
            ..Self::named(&call.server, &call.resource, call.part(), name)
        }
    }

    /// Names the writer of some part of an object.
    fn named(server: &Server, resource: &Resource, part: Part, name: String) -> Self {
        let subresource = match part {
            Part::Main => "",
            Part::Status => "status",
            Part::Finalize => "finalize",
            Part::Ephemeral => "ephemeralcontainers",
            Part::Resize => "resize",
            Part::Approval => "approval",
        };
        Self {
            name,
            subresource: subresource.to_owned(),
            api_version: resource.api_version(),
            now: server.clock.now(),
            catalog: server.kinds.catalog(),
            ignored: ignored(resource, part),
        }
    }

    pub(super) fn write<'a>(&'a self, resource: &'a Resource) -> managed::Write<'a> {
        managed::Write {
            schema: resource.types(),
            api_version: &self.api_version,
            manager: &self.name,
            subresource: &self.subresource,
            ignored: &self.ignored,
            now: &self.now,
            served: self.catalog.served(resource),
        }
    }

    /// Returns a write of an object of a built-in type that is not the resource's, such as a scale.
    pub(super) fn write_as<'a>(
        &'a self,
        schema: &'a Schema,
        api_version: &'a str,
    ) -> managed::Write<'a> {
        managed::Write {
            subresource: &self.subresource,
            ..managed::Write::new(schema, api_version, &self.name, &self.now)
        }
    }
}

/// Returns the fields that a write of some part never changes.
///
/// Source: the `GetResetFields` of the strategies.
fn ignored(resource: &Resource, part: Part) -> Set {
    Set::of(match (part, resource.plural.as_str()) {
        (Part::Main, "certificatesigningrequests") => &["spec", "status"],
        (Part::Main, _) if resource.rules.status => &["status"],
        (Part::Main, _) => &[],
        // Their strategies have a filter of fields, of which their storages say nothing.
        (Part::Ephemeral | Part::Resize, _) => &[],
        (Part::Finalize, _) => &["status"],
        (Part::Approval, _) => &["spec", "status.certificate"],
        (Part::Status, "certificatesigningrequests") => &["spec", "status.conditions"],
        (Part::Status, "deployments") => &["spec", "metadata.labels"],
        (Part::Status, "pods") => &[
            "spec",
            "metadata.deletionTimestamp",
            "metadata.ownerReferences",
        ],
        (Part::Status, "customresourcedefinitions") => &["spec"],
        (Part::Status, _) if strategy::keeps_metadata(resource) => &["spec", "metadata"],
        (Part::Status, _) => &["spec"],
    })
}

/// Accounts for a create, an update or a patch.
pub(super) fn account(call: &Call, live: Option<&Object>, new: &mut Object) {
    let writer = Writer::of(call);
    writer.write(&call.resource).update(live, new);
    if let Some(live) = live.filter(|_| !call.resource.rules.custom) {
        disown_in_others(call, &writer, live, new);
    }
}

/// Removes changed fields from managers that own them in other versions.
///
/// As `Updater.update`, which compares the objects in the version of each owner.
fn disown_in_others(call: &Call, writer: &Writer, live: &Object, new: &mut Object) {
    let resource = &call.resource;
    let owns = |object: &Object, matches: &dyn Fn(&str) -> bool| {
        let entries = object
            .get("metadata")
            .and_then(|it| it["managedFields"].as_array());
        let mut versions = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| entry["apiVersion"].as_str());
        versions.any(matches)
    };
    // Nearly always; then the catalog need not be searched.
    let own = resource.api_version();
    if !owns(new, &|version| version != own) {
        return;
    }
    let others = writer
        .catalog
        .all()
        .filter(|other| other.table == resource.table && other.api_version() != own);
    for other in others {
        let version = other.api_version();
        if !owns(new, &|each| each == version) {
            continue;
        }
        let converted = |object: &Object| view::in_version(resource, other, object.clone());
        let (before, after) = (converted(live), converted(new));
        let write = managed::Write {
            api_version: &version,
            ..writer.write(other)
        };
        write.disown(&before, &after, new);
    }
}

/// Records a change that a part of the server makes, in `managedFields`.
pub(crate) fn account_as(
    server: &Server,
    resource: &Resource,
    part: Part,
    name: &str,
    live: Option<&Object>,
    new: &mut Object,
) {
    let writer = Writer::named(server, resource, part, name.to_owned());
    writer.write(resource).update(live, new);
}

/// Applies something in the name of a part of the server, by force; `None` if it does not match its schema.
pub(crate) fn apply_as(
    server: &Server,
    resource: &Resource,
    part: Part,
    name: &str,
    live: &Object,
    applied: &Object,
) -> Option<Object> {
    let writer = Writer::named(server, resource, part, name.to_owned());
    let merged = writer.write(resource).apply(Some(live), applied, true);
    let mut merged = merged.ok()?;
    resource.set_type(&mut merged);
    Some(merged)
}

/// Explains why an apply was refused.
pub(super) fn refusal(call: &Call, applied: &Object, refused: &ApplyError) -> ApiError {
    let (version, kind) = (call.resource.api_version(), &call.resource.kind);
    if matches!(refused, ApplyError::UntypedLive { .. }) {
        // It is about the object that is there.
        let metadata = json!({"namespace": call.namespace(), "name": call.name()});
        let named = Object::from_iter([("metadata".to_owned(), metadata)]);
        return refusal_of(&version, kind, &named, refused);
    }
    refusal_of(&version, kind, applied, refused)
}

/// Explains why the apply of an object of some version and kind was refused.
pub(super) fn refusal_of(
    api_version: &str,
    kind: &str,
    applied: &Object,
    refused: &ApplyError,
) -> ApiError {
    match refused {
        ApplyError::Conflicts(conflicts) => {
            let causes: Vec<StatusCause> = conflicts
                .iter()
                .map(|each| StatusCause::new("FieldManagerConflict", &each.path, each.to_string()))
                .collect();
            ApiError::apply_conflict(refused.to_string(), &causes)
        }
        untyped => {
            let [namespace, name] =
                ["namespace", "name"].map(|member| metadata_text(applied, member));
            // Go prints the core group as an empty one before the slash.
            let group = if api_version.contains('/') { "" } else { "/" };
            let object = format!("({namespace}/{name}; {group}{api_version}, Kind={kind})");
            ApiError::internal(match untyped {
                ApplyError::UntypedLive {
                    is_unmanaged: true, ..
                } => format!(
                    "failed to create manager for existing fields: failed to convert new object {object} to smd typed: \
                     {untyped}"
                ),
                ApplyError::UntypedLive { .. } => {
                    format!("failed to create typed live object {object}: {untyped}")
                }
                _ => format!("failed to create typed patch object {object}: {untyped}"),
            })
        }
    }
}
