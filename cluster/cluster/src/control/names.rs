//! Decides about the names of a CustomResourceDefinition.

use std::sync::Arc;

use lariat_apimachinery::kinds::{Names, Spec};
use serde_json::{Value, json};

use crate::store::Stored;

/// The names that CRDs hold, with their group.
#[derive(Debug)]
pub(super) struct Accepted {
    /// The CRD's name, its group, its accepted names.
    held: Vec<(String, String, Names)>,
}

/// Whether a CRD gets the names it asks for.
#[derive(Debug)]
pub(super) struct Decision {
    /// The names it holds from now on.
    pub(super) names: Names,
    /// The reason and the message of the last name that is taken.
    pub(super) conflict: Option<(&'static str, String)>,
}

impl Accepted {
    pub(super) fn of(definitions: &[Arc<Stored>]) -> Self {
        let held = definitions.iter().filter_map(|stored| {
            let object = stored.object();
            let group = object.get("spec")?.get("group")?.as_str()?.to_owned();
            let accepted = object.get("status")?.get("acceptedNames")?.clone();
            let names = serde_json::from_value(accepted).ok()?;
            Some((stored.key().name().to_owned(), group, names))
        });
        Self {
            held: held.collect(),
        }
    }

    /// Decides for one CRD, which holds the names it gets from now on.
    pub(super) fn decide(&mut self, definition: &str, spec: &Spec) -> Decision {
        let decision = self.look(definition, spec);
        self.held.retain(|(name, _, _)| name != definition);
        let held = (
            definition.to_owned(),
            spec.group.clone(),
            decision.names.clone(),
        );
        self.held.push(held);
        decision
    }

    fn look(&self, definition: &str, spec: &Spec) -> Decision {
        // As calculateNamesAndConditions in apiextensions' status/naming_controller.go.
        let held = self.held.iter().find(|(name, _, _)| name == definition);
        let own = held.map(|(_, _, names)| names.clone()).unwrap_or_default();
        let others = || {
            let in_group = move |(name, group, _): &&(String, String, Names)| {
                *group == spec.group && name != definition
            };
            self.held.iter().filter(in_group).map(|(_, _, names)| names)
        };
        let resource_taken = |wanted: &str| {
            let has = |names: &Names| {
                names.plural == wanted
                    || names.singular == wanted
                    || names.short_names.iter().any(|name| name == wanted)
            };
            others().any(has)
        };
        let kind_taken =
            |wanted: &str| others().any(|names| names.kind == wanted || names.list_kind == wanted);
        let wanted = &spec.names;
        let mut decision = Decision {
            names: Names {
                // Categories are shared on purpose. Every other name is unique in its group.
                categories: wanted.categories.clone(),
                short_names: own.short_names.clone(),
                ..Names::default()
            },
            conflict: None,
        };
        decision.names.plural = decision.pick(
            "PluralConflict",
            &wanted.plural,
            &own.plural,
            resource_taken,
        );
        decision.names.singular = decision.pick(
            "SingularConflict",
            &wanted.singular,
            &own.singular,
            resource_taken,
        );
        if let Some(taken) = wanted.short_names.iter().find(|name| resource_taken(name)) {
            decision.conflict = Some(("ShortNamesConflict", in_use(taken)));
        } else {
            decision.names.short_names.clone_from(&wanted.short_names);
        }
        decision.names.kind = decision.pick("KindConflict", &wanted.kind, &own.kind, kind_taken);
        decision.names.list_kind = decision.pick(
            "ListKindConflict",
            &wanted.list_kind,
            &own.list_kind,
            kind_taken,
        );
        decision
    }
}

fn in_use(name: &str) -> String {
    format!("{name:?} is already in use")
}

impl Decision {
    /// Accepts a name if it is free, or keeps the one held before.
    fn pick(
        &mut self,
        reason: &'static str,
        wanted: &str,
        held: &str,
        is_taken: impl Fn(&str) -> bool,
    ) -> String {
        // A name the CRD already holds stays its own, even if another CRD asks for it.
        if wanted.is_empty() || wanted == held || !is_taken(wanted) {
            return wanted.to_owned();
        }
        self.conflict = Some((reason, in_use(wanted)));
        held.to_owned()
    }

    /// Returns the accepted names as the status holds them.
    pub(super) fn names_json(&self) -> Value {
        let mut json = json!({"plural": self.names.plural, "kind": self.names.kind});
        for (member, text) in [
            ("singular", &self.names.singular),
            ("listKind", &self.names.list_kind),
        ] {
            if !text.is_empty() {
                json[member] = text.clone().into();
            }
        }
        for (member, list) in [
            ("shortNames", &self.names.short_names),
            ("categories", &self.names.categories),
        ] {
            if !list.is_empty() {
                json[member] = list.clone().into();
            }
        }
        json
    }

    /// Returns the condition that reports the decision.
    pub(super) fn condition(&self) -> Value {
        let (status, reason, message) = match &self.conflict {
            None => ("True", "NoConflicts", "no conflicts found"),
            Some((reason, message)) => ("False", *reason, &**message),
        };
        json!({"type": "NamesAccepted", "status": status, "reason": reason, "message": message})
    }
}
