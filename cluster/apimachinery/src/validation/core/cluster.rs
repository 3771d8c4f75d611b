//! Namespaces, and the binding of Pods to nodes.

use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::formats;

pub(in crate::validation) fn namespace(context: &Context<'_>, causes: &mut Causes) {
    let finalizers = context.get("spec").get("finalizers");
    match (context.is_creation(), context.part) {
        (true, _) => {
            for name in finalizers.items() {
                // `ValidateNamespace` reports these at the list, `ValidateNamespaceFinalizeUpdate` at the item.
                check_finalizer(&finalizers.with(name.value()), causes);
            }
        }
        (_, Part::Finalize) => {
            for name in finalizers.items() {
                check_finalizer(&name, causes);
            }
        }
        (_, Part::Status) => check_phase(context, causes),
        _ => {}
    }
}

/// Checks the name of a finalizer, which has a domain unless it is Kubernetes' own.
fn check_finalizer(at: &Field<'_>, causes: &mut Causes) {
    causes.check_format(at, formats::qualified_name);
    // `validateKubeFinalizerName`.
    let own = matches!(at.text(), "kubernetes" | "orphan" | "foregroundDeletion");
    if !own && !at.text().contains('/') {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        causes.invalid(at, detail);
    }
}

fn check_phase(context: &Context<'_>, causes: &mut Causes) {
    let deleted = context.get("metadata").has("deletionTimestamp");
    let (phase, state) = if deleted {
        ("Terminating", "not empty")
    } else {
        ("Active", "empty")
    };
    let status = context.get("status");
    let found = status.text_of("phase");
    if found != phase {
        let detail = format!("may only be '{phase}' if `deletionTimestamp` is {state}");
        // The capital letter is Go's.
        causes.invalid_as(&status.get("Phase"), found, &detail);
    }
}

pub(in crate::validation) fn binding(context: &Context<'_>, causes: &mut Causes) {
    let target = context.get("target");
    let kind = target.get("kind");
    if !kind.is_void() && kind.text() != "Node" {
        // `ValidatePodBinding`; an empty kind means a node.
        causes.unsupported(&kind, &["Node", "<empty>"]);
    }
    causes.check_given(&target.get("name"), "");
}
