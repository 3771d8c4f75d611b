//! VolumeAttachments.

use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::core::check_inline_volume;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::structs::{Members, Shape};
use crate::validation::volumes;

// `maxAttachedVolumeMetadataSize`, `maxVolumeErrorMessageSize`.
const MOST_METADATA: usize = 256 << 10;
const MOST_MESSAGE: usize = 1024;

// `ValidateVolumeAttachment` and `ValidateVolumeAttachmentUpdate`. Updates of the status keep the spec that is stored,
// so there is nothing to check in it.
pub(in crate::validation) fn volume_attachment(context: &Context<'_>, causes: &mut Causes) {
    let (spec, status) = (context.get("spec"), context.get("status"));
    if !context.updates(Part::Status) {
        volumes::check_driver(&spec.get("attacher"), causes);
        check_source(&spec.get("source"), causes);
        // An empty node name is not "required" but breaks the form of names.
        causes.check_format(&spec.get("nodeName"), formats::dns_subdomain);
    }
    let metadata = status.get("attachmentMetadata");
    let size: usize = metadata
        .entries()
        .map(|(key, value)| key.len() + value.text().len())
        .sum();
    if size > MOST_METADATA {
        causes.too_long(&metadata, MOST_METADATA);
    }
    for name in ["attachError", "detachError"] {
        check_error(&status.get(name), causes);
    }
    let volume = spec.get("source").get("persistentVolumeName");
    if volume.is_set() && !context.updates(Part::Status) {
        causes.check_format(&volume, formats::dns_subdomain);
    }
    if let Some(old) = context
        .old("spec")
        .filter(|_| !context.updates(Part::Status))
    {
        causes.check_immutable_struct(&spec, &old, SPEC);
    }
}

/// The form of a spec in messages.
const SPEC: Members = &[
    ("attacher", "Attacher", Shape::Text),
    (
        "source",
        "Source",
        Shape::Struct(&[
            ("persistentVolumeName", "PersistentVolumeName", Shape::Value),
            ("inlineVolumeSpec", "InlineVolumeSpec", Shape::Value),
        ]),
    ),
    ("nodeName", "NodeName", Shape::Text),
];

// `validateVolumeAttachmentSource`. Inline volumes exist for the migration of in-tree plugins to CSI.
fn check_source(source: &Field<'_>, causes: &mut Causes) {
    let (inline, volume) = (
        source.get("inlineVolumeSpec"),
        source.get("persistentVolumeName"),
    );
    let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (inline.is_set(), volume.is_set()) {
        (false, false) => causes.required(source, detail),
        (true, true) => causes.forbidden(source, detail),
        (false, true) if volume.is_void() => {
            causes.required(&volume, "must specify non empty persistentVolumeName");
        }
        (false, true) => {}
        (true, false) => check_inline_volume(&inline, causes),
    }
}

fn check_error(error: &Field<'_>, causes: &mut Causes) {
    if error.text_of("message").len() > MOST_MESSAGE {
        // Go checks `maxVolumeErrorMessageSize` but names the bound of the metadata in the message
        // (`validateVolumeError`).
        causes.too_long(&error.get("message"), MOST_METADATA);
    }
    let code = error.get("errorCode");
    if code.int().is_some_and(|code| code < 0) {
        // Go names the whole range, although larger numbers fail already when the object is read.
        causes.invalid(&code, "must be between 0 and 2147483647, inclusive");
    }
}
