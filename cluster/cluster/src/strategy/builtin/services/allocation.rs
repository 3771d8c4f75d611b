//! Allocates addresses and node ports that no other Service has.

use lariat_apimachinery::kinds::Resource;
use serde_json::Value;

use super::spec::{node_port, ports};
use crate::server::Server;
use crate::store::Range;

/// The allocation of addresses and ports for a Service.
#[derive(Debug)]
pub(super) struct Allocation<'a> {
    pub(super) server: &'a Server,
    pub(super) resource: &'a Resource,
    /// The allocations of the other Services.
    pub(super) others: Others,
    /// Whether nothing is kept, so that less is checked.
    pub(super) dry_run: bool,
}

/// The addresses and ports of the other Services.
#[derive(Debug, Default)]
pub(super) struct Others {
    pub(super) addresses: Vec<String>,
    pub(super) node_ports: Vec<i64>,
}

impl Others {
    /// Reads the allocations of all Services but the one with a uid.
    pub(super) fn of(server: &Server, resource: &Resource, uid: &str) -> Self {
        let page = server.store.range(resource.table, &Range::default());
        let services = page.map(|page| page.objects).unwrap_or_default();
        let mut others = Self::default();
        for stored in services.iter().filter(|stored| stored.uid() != uid) {
            let object = stored.object();
            let Some(spec) = object.get("spec").and_then(Value::as_object) else {
                continue;
            };
            let addresses = spec.get("clusterIPs").and_then(Value::as_array);
            let addresses = addresses.into_iter().flatten().filter_map(Value::as_str);
            others.addresses.extend(addresses.map(str::to_owned));
            others
                .node_ports
                .extend(ports(spec).iter().filter_map(node_port));
            let check = spec.get("healthCheckNodePort").and_then(Value::as_i64);
            others.node_ports.extend(check);
        }
        others
    }
}
