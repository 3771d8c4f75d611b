//! The controller of ClusterRoles that are made of others.

use std::sync::Arc;

use lariat_apimachinery::kinds::{Resource, TableId};
use lariat_apimachinery::object::Object;
use serde_json::Value;

use super::plane::{Controller, Plane};
use super::write::{Writer, Written};
use crate::server::Server;
use crate::store::{Change, Range};
use crate::strategy::{Part, aggregated};

const MANAGER: &str = "clusterrole-aggregation-controller";

/// Gives roles with an aggregation rule the rules of the roles that it selects.
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
    fn observe(&mut self, _plane: &Plane, change: &Change) {
        self.is_due |= self.table() == Some(change.table);
    }

    fn work(&mut self, plane: &Plane) -> bool {
        let Some(resource) = self.resource.as_ref().filter(|_| self.is_due) else {
            return false;
        };
        self.is_due = false;
        let Ok(page) = plane.server.store.range(resource.table, &Range::default()) else {
            return false;
        };
        let roles: Vec<Object> = page.objects.iter().map(|stored| stored.object()).collect();
        let writer = Writer {
            server: &plane.server,
            manager: MANAGER,
        };
        for (stored, role) in page.objects.iter().zip(&roles) {
            let rules = aggregated(role, roles.iter());
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
            self.is_due |= written == Written::Raced;
        }
        self.is_due
    }
}
