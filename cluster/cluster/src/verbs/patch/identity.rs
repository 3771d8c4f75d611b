//! Whether what a patch makes is still the same object.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::go_text::quoted;
use lariat_apimachinery::object::{Object, metadata_text};
use serde_json::Value;

use crate::status::ApiError;
use crate::store::Stored;
use crate::strategy::Part;
use crate::verbs::call::Call;
use crate::verbs::normalize::{self, Origin};
use crate::verbs::update;

/// Checks that a patch kept the type of its object.
pub(super) fn check_type(call: &Call, patched: &mut Object) -> Result<(), ApiError> {
    if call.is_strategic() && !call.resource.rules.custom {
        // FromUnstructured makes an object of the right type, whatever the map says.
        let is_text = |member| {
            patched
                .get(member)
                .is_none_or(|value| value.is_null() || value.is_string())
        };
        if is_text("kind") && is_text("apiVersion") {
            call.resource.set_type(patched);
        }
        return Ok(());
    }
    let text = |member| {
        patched
            .get(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    // Built-in kinds are read without a type, too.
    let is_left_out = |text: &str| text.is_empty() && !call.resource.rules.custom;
    let keeps_kind = kind == call.resource.kind || is_left_out(kind);
    let keeps_version = api_version == call.resource.api_version() || is_left_out(api_version);
    if kind.is_empty() && !keeps_kind {
        let reason = "Object 'Kind' is missing in the patched object";
        return Err(normalize::refuse(call, Origin::Patch, reason));
    }
    if call.resource.rules.custom && api_version.is_empty() {
        // `ObjectKinds` of the types of unstructured objects.
        let reason = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
        return Err(ApiError::internal_error(reason));
    }
    // `statusStrategy.PrepareForUpdate` starts from the old object, whose type takes the place of the patched one.
    if call.resource.rules.custom && call.part() == Part::Status {
        return Ok(());
    }
    if call.resource.rules.custom && (!keeps_kind || !keeps_version) {
        let (at, given, wanted) = if keeps_kind {
            ("apiVersion", api_version, call.resource.api_version())
        } else {
            ("kind", kind, call.resource.kind.clone())
        };
        let cause = StatusCause::invalid(at, &given.into(), &format!("must be {wanted}"));
        return Err(ApiError::invalid(&call.resource, call.name(), &[cause]));
    }
    if keeps_kind && keeps_version {
        call.resource.set_type(patched);
        return Ok(());
    }
    let reason = unreadable(call, kind, api_version);
    Err(normalize::refuse(call, Origin::Patch, &reason))
}

/// Returns the error of an object of a built-in kind that is read under another type.
fn unreadable(call: &Call, kind: &str, api_version: &str) -> String {
    if api_version.matches('/').count() > 1 {
        return format!("unexpected GroupVersion string: {api_version}");
    }
    let resource = &call.resource;
    let wanted = resource.api_version();
    let [kind, api_version] =
        [(kind, &resource.kind), (api_version, &wanted)].map(|(given, own)| {
            if given.is_empty() {
                own.as_str()
            } else {
                given
            }
        });
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let catalog = call.server.kinds.catalog();
    let mut known = catalog.resources(group, version);
    if !known.any(|each| each.kind == kind && !each.rules.custom) {
        return format!(
            "no kind {kind} is registered for version {api_version} in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
            kind = quoted(kind),
            api_version = quoted(api_version)
        );
    }
    // The internal version has the name of its package.
    let package = match resource.group.split('.').next() {
        None | Some("") => "core",
        Some(package) => package,
    };
    let own = &resource.kind;
    format!("converting ({version}.{kind}) to ({package}.{own}): unknown conversion")
}

/// Checks that a patch kept the identity of its object, and its version.
pub(super) fn check_identity(
    call: &Call,
    patched: &Object,
    current: &Stored,
) -> Result<(), ApiError> {
    call.check_same_namespace(patched)?;
    call.check_same_name(patched)?;
    update::check_revision(call, metadata_text(patched, "resourceVersion"), current)
}
