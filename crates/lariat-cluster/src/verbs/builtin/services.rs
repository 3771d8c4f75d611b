//! Services.

use serde_json::{Value, json};

use super::at;
use crate::api::status::Cause;
use crate::kinds::Resource;
use crate::server::Server;
use crate::store::{Object, Range};

/// How many addresses of the range 10.96.0.0/12 are given out.
const ADDRESSES: usize = 1 << 20;
/// The ports of nodes that Services may have.
const NODE_PORTS: std::ops::Range<u16> = 30000..32768;

/// Gives a new Service an address, and ports of the nodes if it wants them.
pub(super) fn prepare_create(server: &Server, resource: &Resource, object: &mut Object) {
    let kind = at(object, &["spec", "type"])
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let Some(spec) = object.get_mut("spec").filter(|_| kind != "ExternalName") else {
        return;
    };
    let taken = taken(server, resource);
    let address = match spec["clusterIP"].as_str().unwrap_or_default() {
        "" => free(server, &taken),
        given => given.to_owned(),
    };
    spec["clusterIP"] = address.clone().into();
    spec["clusterIPs"] = json!([address]);
    let wants_ports = matches!(kind.as_str(), "NodePort" | "LoadBalancer");
    let ports = spec["ports"].as_array_mut().filter(|_| wants_ports);
    for port in ports.into_iter().flatten() {
        if port["nodePort"].as_u64().unwrap_or(0) == 0 {
            let span = usize::from(NODE_PORTS.end - NODE_PORTS.start);
            let chosen = usize::from(NODE_PORTS.start) + server.names.number(span);
            port["nodePort"] = chosen.into();
        }
    }
}

/// The addresses Services have.
fn taken(server: &Server, resource: &Resource) -> Vec<String> {
    let page = server.store.range(resource.table, &Range::default());
    let services = page.map(|page| page.objects).unwrap_or_default();
    let address = |object: Object| {
        let address = at(&object, &["spec", "clusterIP"])?.as_str()?;
        Some(address.to_owned())
    };
    services
        .iter()
        .filter_map(|stored| address(stored.object()))
        .collect()
}

fn free(server: &Server, taken: &[String]) -> String {
    loop {
        let number = 1 + server.names.number(ADDRESSES - 2);
        let [_, high, middle, low] = (number as u32).to_be_bytes();
        let address = format!("10.{}.{middle}.{low}", 96 + high);
        if !taken.contains(&address) {
            return address;
        }
    }
}

pub(super) fn validate(object: &Object) -> Vec<Cause> {
    let mut causes = Vec::new();
    let text = |name: &str| {
        at(object, &["spec", name])
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let ports = at(object, &["spec", "ports"]).and_then(Value::as_array);
    let kind = text("type");
    if !matches!(
        kind,
        "ClusterIP" | "NodePort" | "LoadBalancer" | "ExternalName"
    ) {
        let supported = r#""ClusterIP", "ExternalName", "LoadBalancer", "NodePort""#;
        causes.push(Cause::unsupported("spec.type", kind, supported));
    }
    if kind == "ExternalName" && text("externalName").is_empty() {
        causes.push(Cause::required("spec.externalName", ""));
    }
    let needs_ports = kind != "ExternalName" && text("clusterIP") != "None";
    if needs_ports && ports.is_none_or(Vec::is_empty) {
        causes.push(Cause::required("spec.ports", ""));
    }
    for (at, port) in ports.into_iter().flatten().enumerate() {
        let number = port["port"].as_i64().unwrap_or(0);
        if !(1..=65535).contains(&number) {
            let message = "must be between 1 and 65535, inclusive";
            let field = format!("spec.ports[{at}].port");
            causes.push(Cause::invalid(&field, &number.into(), message));
        }
    }
    causes
}
