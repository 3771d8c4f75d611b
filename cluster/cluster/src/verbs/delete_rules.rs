//! The effects of a deletion, by the kind of the object and the options.
//!
//! Source: `BeforeDelete` in `k8s.io/apiserver/pkg/registry/rest`, and
//! `updateForGracefulDeletionAndFinalizers` in `k8s.io/apiserver/pkg/registry/generic/registry`.

use lariat_apimachinery::crd::CLEANUP;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, finalizers, metadata_mut, metadata_text};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::store::Stored;
use crate::strategy::{FOREGROUND, ORPHAN, finalizers_in_spec, raise_generation, set_condition};

/// The handling of the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay, without the reference to it.
    Orphan,
}

impl Propagation {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "Background" => Some(Self::Background),
            "Foreground" => Some(Self::Foreground),
            "Orphan" => Some(Self::Orphan),
            _ => None,
        }
    }
}

/// A deletion and its options; unset options have the defaults of the kind.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Deletion {
    /// The seconds it has until its end.
    pub(crate) grace: Option<u64>,
    pub(crate) propagation: Option<Propagation>,
}

/// The effect of a deletion.
#[derive(Debug)]
pub(super) enum Removal {
    /// The object is removed.
    Now,
    /// It gets a deletion timestamp, which watchers see, and is removed.
    MarkAndGo(Object),
    /// It gets a deletion timestamp, and waits for finalizers or its grace period.
    Mark(Object),
    /// It waits for its finalizers already.
    Held,
    /// Its grace period runs already.
    Pending,
}

/// The way in which objects of a kind are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeletionMode {
    /// At once.
    AtOnce,
    /// After a grace period: Pods.
    Gracefully,
    /// After the control plane has done its part: namespaces and CRDs.
    Emptied,
}

fn way(resource: &Resource) -> DeletionMode {
    match (&*resource.group, &*resource.plural) {
        ("", "pods") => DeletionMode::Gracefully,
        ("", "namespaces") | ("apiextensions.k8s.io", "customresourcedefinitions") => {
            DeletionMode::Emptied
        }
        _ => DeletionMode::AtOnce,
    }
}

/// Returns whether the control plane empties objects of a kind before they go.
pub(super) fn is_emptied(resource: &Resource) -> bool {
    way(resource) == DeletionMode::Emptied
}

/// Decides how an object is deleted.
pub(super) fn removal(
    resource: &Resource,
    clock: &Clock,
    current: &Stored,
    deletion: Deletion,
) -> Removal {
    let way = way(resource);
    // Most objects go at once, and need not be decoded for that.
    if way == DeletionMode::AtOnce
        && !current.has_finalizers()
        && propagation(resource, &[], deletion.propagation) == Propagation::Background
    {
        return Removal::Now;
    }
    let old = current.object();
    let mut object = old.clone();
    // As REST.Delete in registry/core/namespace/storage and in apiextensions' registry/customresourcedefinition: the
    // first deletion only marks, whatever its options.
    if way == DeletionMode::Emptied && !current.is_deleting() {
        begin_emptying(resource, &mut object, clock, deletion.propagation);
        metadata_mut(&mut object).insert("deletionTimestamp".into(), clock.now().into());
        return Removal::Mark(object);
    }
    // Only namespaces have them. Until they are gone the namespace controller is at work.
    if way == DeletionMode::Emptied && !finalizers_in_spec(resource, &object).is_empty() {
        return Removal::Held;
    }
    let mut period = None;
    if way == DeletionMode::Gracefully {
        match shorten(&mut object, clock, deletion.grace) {
            Grace::Pending => return Removal::Pending,
            Grace::Runs(seconds) => period = Some(seconds),
            Grace::Over => {}
        }
    }
    set_finalizers(resource, &mut object, deletion.propagation);
    let is_held = !finalizers(&object).is_empty();
    match period {
        Some(0) if !is_held => Removal::MarkAndGo(object),
        Some(_) => Removal::Mark(object),
        None if !is_held => Removal::Now,
        None => {
            mark(&mut object, clock);
            // A repeated deletion that changes nothing is not stored, and so makes no event.
            if object == old {
                Removal::Held
            } else {
                Removal::Mark(object)
            }
        }
    }
}

/// Marks an object whose kind the control plane empties first.
fn begin_emptying(
    resource: &Resource,
    object: &mut Object,
    clock: &Clock,
    propagation: Option<Propagation>,
) {
    if resource.plural == "namespaces" {
        let status = object.entry("status").or_insert_with(|| json!({}));
        if let Some(status) = status.as_object_mut() {
            status.insert("phase".into(), "Terminating".into());
        }
        // As in Go, a namespace takes the finalizer of the propagation with the mark; a CRD has only its own.
        set_finalizers(resource, object, propagation);
        return;
    }
    let mut all = owned_finalizers(object);
    if !all.iter().any(|each| each == CLEANUP) {
        all.push(CLEANUP.to_owned());
    }
    metadata_mut(object).insert("finalizers".into(), all.into());
    let pending = json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    set_condition(object, pending, &clock.now());
}

fn owned_finalizers(object: &Object) -> Vec<String> {
    finalizers(object).into_iter().map(str::to_owned).collect()
}

/// Marks an object as being deleted, without any time left to it.
fn mark(object: &mut Object, clock: &Clock) {
    if metadata_text(object, "deletionTimestamp").is_empty() {
        count_change(object);
    }
    let metadata = metadata_mut(object);
    // As markAsDeleting: a time that is still to come was the end of a grace period, which is over now.
    let at = metadata
        .get("deletionTimestamp")
        .and_then(Value::as_str)
        .filter(|at| !clock.is_later(at))
        .map_or_else(|| clock.now(), str::to_owned);
    metadata.insert("deletionTimestamp".into(), at.into());
    metadata.insert("deletionGracePeriodSeconds".into(), json!(0));
}

/// Counts the mark as a change, for kinds that count changes.
fn count_change(object: &mut Object) {
    let metadata = object.get("metadata");
    let generation = metadata.and_then(|metadata| metadata.get("generation")?.as_i64());
    if generation.is_some_and(|generation| generation > 0) {
        raise_generation(object);
    }
}

/// The progress of a Pod through its grace period.
enum Grace {
    /// It has so many seconds from now on.
    Runs(u64),
    /// It runs already, and not longer than is asked for.
    Pending,
    /// The Pod was marked without one, or with one of zero.
    Over,
}

/// Marks a Pod with its grace period, or makes the one that runs shorter.
fn shorten(pod: &mut Object, clock: &Clock, asked: Option<u64>) -> Grace {
    let marked = metadata_text(pod, "deletionTimestamp").to_owned();
    if marked.is_empty() {
        let grace = grace_period(pod, asked);
        count_change(pod);
        let metadata = metadata_mut(pod);
        metadata.insert("deletionTimestamp".into(), clock.later(grace).into());
        metadata.insert("deletionGracePeriodSeconds".into(), json!(grace));
        return Grace::Runs(grace);
    }
    let metadata = metadata_mut(pod);
    let known = metadata.get("deletionGracePeriodSeconds");
    // As BeforeDelete: an object that was marked without a period, or with none left, goes at once.
    let Some(known) = known.and_then(Value::as_u64).filter(|known| *known > 0) else {
        return Grace::Over;
    };
    let Some(asked) = asked.filter(|asked| *asked < known) else {
        return Grace::Pending;
    };
    // The period counts from the first deletion, not from this one.
    let (mut at, mut period) = (clock.earlier(&marked, known - asked), asked);
    if clock.is_past(&at) {
        // The end is never moved into the past. One second is left, for what ends the Pod to see the change.
        (at, period) = (clock.now(), asked.min(1));
    }
    metadata.insert("deletionTimestamp".into(), at.into());
    metadata.insert("deletionGracePeriodSeconds".into(), json!(period));
    Grace::Runs(period)
}

/// Returns the seconds a Pod has between the request to delete it and its end.
fn grace_period(pod: &Object, asked: Option<u64>) -> u64 {
    let at = |member: &str, field: &str| pod.get(member).and_then(|value| value.get(field));
    let text = |member, field| {
        let value = at(member, field);
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let is_over = matches!(text("status", "phase"), "Succeeded" | "Failed");
    // As podStrategy.CheckGracefulDelete: what runs nowhere ends at once, also if time was asked for.
    if text("spec", "nodeName").is_empty() || is_over {
        return 0;
    }
    let seconds = at("spec", "terminationGracePeriodSeconds").and_then(Value::as_i64);
    let own = seconds.map_or(30, |seconds| u64::try_from(seconds).unwrap_or(1));
    asked.unwrap_or(own)
}

/// Adds the finalizer that the propagation asks for, and removes the other.
fn set_finalizers(resource: &Resource, object: &mut Object, asked: Option<Propagation>) {
    let known = owned_finalizers(object);
    // As deletionFinalizersForGarbageCollection in the generic registry.
    let wanted = match propagation(resource, &known, asked) {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    let ours = |name: &str| matches!(name, FOREGROUND | ORPHAN);
    let present: Vec<&str> = known
        .iter()
        .map(String::as_str)
        .filter(|name| ours(name))
        .collect();
    if present == wanted.as_slice() {
        return;
    }
    let others = known.iter().filter(|name| !ours(name)).cloned();
    let all: Vec<String> = others.chain(wanted.map(str::to_owned)).collect();
    let metadata = metadata_mut(object);
    if all.is_empty() {
        metadata.remove("finalizers")
    } else {
        metadata.insert("finalizers".into(), all.into())
    };
}

/// Returns the propagation: that of the request, an earlier one, or the default.
fn propagation(resource: &Resource, known: &[String], asked: Option<Propagation>) -> Propagation {
    let default = match (&*resource.group, &*resource.plural) {
        // Events own nothing.
        ("" | "events.k8s.io", "events") => return Propagation::Background,
        // Older than the garbage collector, when nothing deleted dependents.
        ("", "replicationcontrollers") | ("batch", "jobs") => Propagation::Orphan,
        _ => Propagation::Background,
    };
    let before = known.iter().find_map(|name| match name.as_str() {
        FOREGROUND => Some(Propagation::Foreground),
        ORPHAN => Some(Propagation::Orphan),
        _ => None,
    });
    asked.or(before).unwrap_or(default)
}
