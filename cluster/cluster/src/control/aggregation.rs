//! The controller of ClusterRoles that are made of others.

use std::sync::Arc;

use lariat_apimachinery::kinds::{Resource, TableId};
use serde_json::Value;

use super::controller::{ControlPlane, Controller};
use super::write::{WriteOutcome, Writer};
use crate::server::Server;
use crate::store::{Change, Range, Stored};
use crate::strategy::{AGGREGATION_RULE, Part, RolePart, aggregated};

const MANAGER: &str = "clusterrole-aggregation-controller";

/// Aggregates the rules of the selected roles into roles with an aggregation rule.
#[derive(Debug)]
pub(super) struct Aggregation {
    resource: Option<Arc<Resource>>,
    /// Whether a role has changed.
    is_due: bool,
}

impl Aggregation {
    pub(super) fn new(server: &Server) -> Self {
        let catalog = server.kinds.catalog();
        let group = "rbac.authorization.k8s.io";
        Self {
            resource: catalog.resource(group, "v1", "clusterroles").cloned(),
            is_due: false,
        }
    }

    fn table(&self) -> Option<TableId> {
        self.resource.as_ref().map(|resource| resource.table)
    }
}

impl Controller for Aggregation {
    fn observe(&mut self, _plane: &ControlPlane, change: &Change) {
        self.is_due |= self.table() == Some(change.table);
    }

    fn work(&mut self, plane: &ControlPlane) -> bool {
        let Some(resource) = self.resource.as_ref().filter(|_| self.is_due) else {
            return false;
        };
        self.is_due = false;
        let Ok(page) = plane.server.store.range(resource.table, &Range::default()) else {
            return false;
        };
        // All roles are read again: any of them may gain or lose the label that is selected.
        let parts: Vec<RolePart<'_, &Arc<Stored>>> = page.objects.iter().map(part).collect();
        let writer = Writer {
            server: &plane.server,
            manager: MANAGER,
        };
        for stored in page
            .objects
            .iter()
            .filter(|stored| is_made_of_others(stored))
        {
            let role = stored.object();
            let rules = aggregated(&role, &parts, |stored| rules_of(stored));
            let Some(rules) = rules
                .map(Value::from)
                .filter(|rules| role.get("rules") != Some(rules))
            else {
                continue;
            };
            let written = writer.update(resource, Part::Main, stored, |role| {
                role.insert("rules".into(), rules);
            });
            // Roles that are made of this one come with the change that was just made.
            self.is_due |= written == WriteOutcome::Raced;
        }
        self.is_due
    }
}

fn part(stored: &Arc<Stored>) -> RolePart<'_, &Arc<Stored>> {
    RolePart {
        name: stored.key().name(),
        labels: stored.labels().clone(),
        source: stored,
    }
}

fn rules_of(stored: &Stored) -> Vec<Value> {
    match stored.object().remove("rules") {
        Some(Value::Array(rules)) => rules,
        _ => Vec::new(),
    }
}

/// Returns whether a role may have the rule, without decoding it.
fn is_made_of_others(stored: &Stored) -> bool {
    let name = AGGREGATION_RULE.as_bytes();
    stored
        .content()
        .windows(name.len())
        .any(|part| part == name)
}
