//! One built-in kind, written down.

use std::sync::{Arc, OnceLock};

use super::resource::{Generation, Outdated, Resource, Rules, TableId};
use crate::names::NameRule;

/// One built-in kind.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) namespaced: bool,
    pub(super) short_names: &'static [&'static str],
    pub(super) categories: &'static [&'static str],
    pub(super) rules: Rules,
    /// The warning for clients that use the kind.
    pub(super) deprecation: Option<&'static str>,
}

/// Begins the row of a namespaced kind.
pub(super) fn ns(api: &'static str, kind: &'static str, plural: &'static str) -> Row {
    let (group, version) = api.split_once('/').unwrap_or(("", api));
    Row {
        group,
        version,
        kind,
        plural,
        namespaced: true,
        short_names: &[],
        categories: &[],
        rules: Rules::default(),
        deprecation: None,
    }
}

/// Begins the row of a cluster-scoped kind.
pub(super) fn cluster(api: &'static str, kind: &'static str, plural: &'static str) -> Row {
    Row {
        namespaced: false,
        ..ns(api, kind, plural)
    }
}

impl Row {
    pub(super) fn short(self, short_names: &'static [&'static str]) -> Self {
        Self {
            short_names,
            ..self
        }
    }

    pub(super) fn all(self) -> Self {
        Self {
            categories: &["all"],
            ..self
        }
    }

    pub(super) fn extends(self) -> Self {
        Self {
            categories: &["api-extensions"],
            ..self
        }
    }

    pub(super) fn generation(mut self) -> Self {
        self.rules.generation = Generation::Content;
        self
    }

    pub(super) fn generation_as_sent(mut self) -> Self {
        self.rules.generation = Generation::ContentAsSent;
        self
    }

    pub(super) fn generation_and_labels(mut self) -> Self {
        self.rules.generation = Generation::ContentAndLabels;
        self
    }

    pub(super) fn generation_of_changes(mut self) -> Self {
        self.rules.generation = Generation::ContentChanged;
        self
    }

    pub(super) fn generation_of_creation(mut self) -> Self {
        self.rules.generation = Generation::Created;
        self
    }

    pub(super) fn status(mut self) -> Self {
        self.rules.status = true;
        self
    }

    pub(super) fn put_creates(mut self) -> Self {
        self.rules.put_creates = true;
        self
    }

    pub(super) fn version_required(mut self) -> Self {
        self.rules.version_required = true;
        self
    }

    pub(super) fn answers_object(mut self) -> Self {
        self.rules.delete_answers_object = true;
        self
    }

    pub(super) fn fields(mut self, labels: &[&str]) -> Self {
        self.rules.field_labels = labels.iter().map(|label| (*label).to_owned()).collect();
        self
    }

    pub(super) fn deprecated(self, warning: &'static str) -> Self {
        Self {
            deprecation: Some(warning),
            ..self
        }
    }

    pub(super) fn review(mut self) -> Self {
        self.rules.review = true;
        self
    }

    pub(super) fn read_only(mut self) -> Self {
        self.rules.read_only = true;
        self
    }

    pub(super) fn names(mut self, rule: NameRule) -> Self {
        self.rules.names = rule;
        self
    }

    /// Returns the version in which a real server stores the objects.
    fn storage_version(&self) -> String {
        // It shows in discovery, in the hash of the storage version.
        let stored = match (self.group, self.kind) {
            ("events.k8s.io", "Event") => "v1",
            ("autoscaling", _) => "autoscaling/v2",
            ("apiextensions.k8s.io", _) => "apiextensions.k8s.io/v1beta1",
            ("admissionregistration.k8s.io", kind) if kind.starts_with("MutatingAdmission") => {
                "admissionregistration.k8s.io/v1beta1"
            }
            ("", _) => self.version,
            (group, _) => return format!("{group}/{}", self.version),
        };
        stored.to_owned()
    }

    /// Returns the resource whose objects are in a table.
    pub(super) fn resource(self, table: TableId) -> Resource {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Resource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            storage_version: self.storage_version(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            plural: self.plural.to_owned(),
            // True for all built-in kinds.
            singular: self.kind.to_lowercase(),
            short_names: texts(self.short_names),
            categories: texts(self.categories),
            namespaced: self.namespaced,
            rules: self.rules,
            table,
            terminating: Arc::default(),
            types: OnceLock::new(),
            schema: None,
            storage_schema: None,
            conversion: None,
            outdated: Outdated::default(),
            columns: Vec::new(),
            deprecation: self.deprecation.map(str::to_owned),
        }
    }
}
