//! Events, in the core group and in their own.
//!
//! Whatever group they are written in, causes have the members' names in the core group.

use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::structs::{self, Members, Shape};

/// The names of members in the core group, and in their own.
type Names = [(&'static str, &'static str)];

const CORE: &Names = &[
    ("involvedObject", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("message", "message"),
];

const OWN: &Names = &[
    ("involvedObject", "regarding"),
    ("reportingController", "reportingController"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

pub(in crate::validation) fn core_event(context: &Context<'_>, causes: &mut Causes) {
    // `legacyValidateEvent`: the core group has no other rules, so that old clients go on working.
    check_any(context, CORE, "reportingComponent", causes);
}

pub(in crate::validation) fn event(context: &Context<'_>, causes: &mut Causes) {
    check_any(context, OWN, "reportingController", causes);
    if context.is_creation() {
        check_new(context, causes);
    } else {
        check_changed(context, causes);
    }
}

/// Returns a member under its name in the core group.
fn named<'a>(context: &Context<'a>, names: &Names, name: &'static str) -> Field<'a> {
    let pair = names.iter().find(|(core, _)| *core == name);
    let written = pair.map_or(name, |(_, written)| written);
    // Validation in Go sees the internal type, whose members have the names of the core group; only the value is read
    // from where it was written.
    context.get(name).with(context.get(written).value())
}

/// Checks the rules for Events of both groups.
fn check_any(context: &Context<'_>, names: &Names, reporter: &'static str, causes: &mut Causes) {
    let own = context.get("metadata").text_of("namespace");
    let of_object = named(context, names, "involvedObject").get("namespace");
    let is_new_form = context.get("eventTime").is_set();
    let fits = match (is_new_form, of_object.text()) {
        // An object without a namespace has its Events in one of these.
        (true, "") => matches!(own, "default" | "kube-system"),
        // Events of the new form may be in another namespace than their object.
        (true, _) => true,
        (false, "") => matches!(own, "" | "default"),
        (false, namespace) => namespace == own,
    };
    if !fits {
        causes.invalid_as(
            &of_object,
            of_object.text(),
            "does not match event.namespace",
        );
    }
    if !is_new_form {
        return;
    }
    let controller = named(context, names, "reportingController");
    let controller = context.get(reporter).with(controller.value());
    causes.check_given(&controller, "");
    causes.check_format(&controller, formats::qualified_name);
    // `ReportingInstanceLengthLimit` and the limits beside it.
    for (name, most, needed) in [
        ("reportingInstance", 128, true),
        ("action", 128, true),
        ("reason", 128, true),
        ("message", 1024, false),
    ] {
        let at = named(context, names, name);
        if needed {
            causes.check_given(&at, "");
        }
        if at.text().len() > most {
            causes.invalid_as(&at, "", &format!("can have at most {most} characters"));
        }
    }
}

fn check_new(context: &Context<'_>, causes: &mut Causes) {
    // `ValidateEventCreate`.
    check_series(context, causes);
    causes.check_given(&context.get("eventTime"), "");
    let kind = context.get("type");
    if !matches!(kind.text(), "Normal" | "Warning") {
        causes.invalid_as(&kind, "", &format!("has invalid value: {}", kind.text()));
    }
    // These have successors in the new form.
    for name in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        let at = named(context, OWN, name);
        let is_zero = at.is_void() || at.int() == Some(0);
        if !is_zero {
            causes.invalid_as(&context.get(name), "", "needs to be unset");
        }
    }
}

fn check_series(context: &Context<'_>, causes: &mut Causes) {
    let series = context.get("series");
    if !series.is_set() {
        return;
    }
    // One occurrence is no series.
    if series.int_of("count").unwrap_or(0) < 2 {
        causes.invalid_as(&series.get("count"), "", "should be at least 2");
    }
    causes.check_given(&series.get("lastObservedTime"), "");
}

fn check_changed(context: &Context<'_>, causes: &mut Causes) {
    let series = context.get("series");
    if context
        .old("series")
        .is_some_and(|old| old.value() != series.value())
    {
        check_series(context, causes);
    }
    // `ValidateEventUpdate`: only the series of an Event goes on.
    for (name, written, kind) in FIXED {
        let at = context.get(name).with(context.get(written).value());
        let Some(old) = context.old(written) else {
            continue;
        };
        match kind {
            // What the core group lets an Event lack is the zero of its type.
            Kind::Plain(shape) => {
                let (now, was) = (
                    structs::shown_as(at.value(), *shape),
                    structs::shown_as(old.value(), *shape),
                );
                if now != was {
                    causes.invalid_struct(&at, &now, "field is immutable");
                }
            }
            Kind::Text if at.text() != old.text() => {
                causes.invalid_as(&at, at.text(), "field is immutable");
            }
            Kind::Text => {}
        }
    }
}

/// The comparison of a member, and its form in messages.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Plain(Shape),
}

const REFERENCE: Members = &[
    ("kind", "Kind", Shape::Text),
    ("namespace", "Namespace", Shape::Text),
    ("name", "Name", Shape::Text),
    ("uid", "UID", Shape::Text),
    ("apiVersion", "APIVersion", Shape::Text),
    ("resourceVersion", "ResourceVersion", Shape::Text),
    ("fieldPath", "FieldPath", Shape::Text),
];

const SOURCE: Members = &[
    ("component", "Component", Shape::Text),
    ("host", "Host", Shape::Text),
];

/// The immutable members, in Go's order: names in the core group and in the Events' own, and kinds.
const FIXED: &[(&str, &str, Kind)] = &[
    (
        "involvedObject",
        "regarding",
        Kind::Plain(Shape::Whole(REFERENCE)),
    ),
    ("reason", "reason", Kind::Text),
    ("message", "note", Kind::Text),
    (
        "source",
        "deprecatedSource",
        Kind::Plain(Shape::Whole(SOURCE)),
    ),
    (
        "firstTimestamp",
        "deprecatedFirstTimestamp",
        Kind::Plain(Shape::Value),
    ),
    (
        "lastTimestamp",
        "deprecatedLastTimestamp",
        Kind::Plain(Shape::Value),
    ),
    ("count", "deprecatedCount", Kind::Plain(Shape::Number)),
    ("type", "type", Kind::Text),
    ("eventTime", "eventTime", Kind::Plain(Shape::Value)),
    ("action", "action", Kind::Text),
    ("related", "related", Kind::Plain(Shape::Struct(REFERENCE))),
    ("reportingController", "reportingController", Kind::Text),
    ("reportingInstance", "reportingInstance", Kind::Text),
];
