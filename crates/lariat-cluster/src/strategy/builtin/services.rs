//! Services.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use super::parts::{at, is_void};
use crate::server::Server;
use crate::store::Range;

/// How many addresses of the range 10.96.0.0/12 are given out.
const ADDRESSES: usize = 1 << 20;
/// The ports of nodes that Services may have.
const NODE_PORTS: std::ops::Range<u16> = 30000..32768;

/// Gives a new Service an address, and ports of the nodes if it wants them.
pub(super) fn prepare_create(
    server: &Server,
    resource: &Resource,
    object: &mut Object,
) -> Result<(), StatusCause> {
    allocate(&Others::of(server, resource, ""), server, object)
}

/// Keeps or drops what a Service was allocated, by its type, and allocates the rest.
///
/// Source: `patchAllocatedValues` and `dropTypeDependentFields` in
/// `k8s.io/kubernetes/pkg/registry/core/service`.
pub(super) fn prepare_update(
    server: &Server,
    resource: &Resource,
    old: &Object,
    new: &mut Object,
) -> Result<(), StatusCause> {
    let (was, is) = (Needs::of(old), Needs::of(new));
    let inner = |object: &Object| object.get("spec").and_then(Value::as_object).cloned();
    let old_spec = inner(old).unwrap_or_default();
    if let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) {
        match is.address {
            true if was.address => keep_address(&old_spec, spec),
            false if was.address => drop_same(&old_spec, spec, &ADDRESS_MEMBERS),
            _ => {}
        }
        match is.ports {
            true if was.ports => keep_ports(&old_spec, spec),
            false if was.ports => drop_ports(&old_spec, spec),
            _ => {}
        }
        if was.ports && !is.ports {
            drop_same(&old_spec, spec, &["externalTrafficPolicy"]);
        }
        if was.balancer && !is.balancer {
            drop_same(&old_spec, spec, &BALANCER_MEMBERS);
        }
    }
    let uid = at(old, &["metadata", "uid"]).and_then(Value::as_str);
    let others = Others::of(server, resource, uid.unwrap_or_default());
    allocate(&others, server, new)
}

/// What an address brings along.
const ADDRESS_MEMBERS: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];
/// What only balanced Services have.
const BALANCER_MEMBERS: [&str; 2] = ["allocateLoadBalancerNodePorts", "loadBalancerClass"];

/// What the type of a Service needs.
#[derive(Debug, Clone, Copy)]
struct Needs {
    address: bool,
    /// Whether it may have ports of the nodes.
    ports: bool,
    balancer: bool,
}

impl Needs {
    fn of(object: &Object) -> Self {
        let kind = at(object, &["spec", "type"])
            .and_then(Value::as_str)
            .unwrap_or("ClusterIP");
        Self {
            address: kind != "ExternalName",
            ports: matches!(kind, "NodePort" | "LoadBalancer"),
            balancer: kind == "LoadBalancer",
        }
    }
}

fn keep_address(old: &Object, new: &mut Object) {
    if is_void(new.get("clusterIP")) {
        copy(old, new, "clusterIP");
    }
    if new.get("clusterIP") != old.get("clusterIP") {
        return;
    }
    for member in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if is_void(new.get(member)) {
            copy(old, new, member);
        }
    }
}

fn copy(from: &Object, to: &mut Object, member: &str) {
    if let Some(value) = from.get(member) {
        to.insert(member.to_owned(), value.clone());
    }
}

/// Drops what the client did not change, and so did not mean.
fn drop_same(old: &Object, new: &mut Object, members: &[&str]) {
    for member in members {
        if new.get(*member) == old.get(*member) {
            new.remove(*member);
        }
    }
}

fn ports(spec: &Object) -> &[Value] {
    let ports = spec.get("ports").and_then(Value::as_array);
    ports.map_or(&[], Vec::as_slice)
}

fn ports_mut(spec: &mut Object) -> impl Iterator<Item = &mut Object> {
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    let each = ports.into_iter().flatten();
    each.filter_map(Value::as_object_mut)
}

fn node_port(port: &Value) -> Option<u64> {
    port.get("nodePort")?.as_u64().filter(|number| *number != 0)
}

/// Gives the ports of the nodes back to the ports that had them.
fn keep_ports(old: &Object, new: &mut Object) {
    let mut used: Vec<u64> = ports(new).iter().filter_map(node_port).collect();
    for port in ports_mut(new) {
        if port.get("nodePort").is_some_and(|number| *number != 0) {
            continue;
        }
        let same = |other: &&Value| {
            ["protocol", "port"]
                .iter()
                .all(|member| other.get(*member) == port.get(*member))
        };
        let kept = ports(old).iter().find(same).and_then(node_port);
        if let Some(kept) = kept.filter(|kept| !used.contains(kept)) {
            used.push(kept);
            port.insert("nodePort".into(), kept.into());
        }
    }
}

fn drop_ports(old: &Object, new: &mut Object) {
    let numbers =
        |spec: &Object| -> Vec<Option<u64>> { ports(spec).iter().map(node_port).collect() };
    if numbers(old) == numbers(new) {
        for port in ports_mut(new) {
            port.remove("nodePort");
        }
    }
}

/// What the other Services have.
#[derive(Debug, Default)]
struct Others {
    addresses: Vec<String>,
    node_ports: Vec<u64>,
}

impl Others {
    /// Looks at all Services but the one with a uid.
    fn of(server: &Server, resource: &Resource, uid: &str) -> Self {
        let page = server.store.range(resource.table, &Range::default());
        let services = page.map(|page| page.objects).unwrap_or_default();
        let mut others = Self::default();
        for stored in services.iter().filter(|stored| stored.uid() != uid) {
            let object = stored.object();
            let spec = object.get("spec").and_then(Value::as_object);
            let address = spec.and_then(|spec| spec.get("clusterIP")?.as_str());
            others.addresses.extend(address.map(str::to_owned));
            let ports = spec.map_or(&[] as &[Value], ports);
            others.node_ports.extend(ports.iter().filter_map(node_port));
        }
        others
    }
}

/// Gives a Service what its type needs and it has not.
fn allocate(others: &Others, server: &Server, object: &mut Object) -> Result<(), StatusCause> {
    let needs = Needs::of(object);
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    let Some(spec) = spec.filter(|_| needs.address) else {
        return Ok(());
    };
    families(spec);
    let asked = spec.get("clusterIP").and_then(Value::as_str);
    let address = match asked.unwrap_or_default() {
        "" => free(server, &others.addresses),
        given => given.to_owned(),
    };
    if is_void(spec.get("clusterIPs")) {
        spec.insert("clusterIPs".into(), json!([address]));
    }
    spec.insert("clusterIP".into(), address.into());
    let declined = spec.get("allocateLoadBalancerNodePorts") == Some(&Value::Bool(false));
    if needs.ports {
        allocate_ports(others, server, spec, !(needs.balancer && declined))
    } else {
        Ok(())
    }
}

/// Chooses families of addresses; the cluster has one, and what has neither address nor selector may have both.
///
/// Source: `initIPFamilyFields` in `k8s.io/kubernetes/pkg/registry/core/service/storage`.
fn families(spec: &mut Object) {
    let is_free = spec.get("clusterIP") == Some(&"None".into()) && is_void(spec.get("selector"));
    if is_void(spec.get("ipFamilyPolicy")) {
        let policy = if is_free { "RequireDualStack" } else { "SingleStack" };
        spec.insert("ipFamilyPolicy".into(), policy.into());
    }
    if is_void(spec.get("ipFamilies")) {
        spec.insert("ipFamilies".into(), json!(["IPv4"]));
    }
    let is_single = spec.get("ipFamilyPolicy") == Some(&"SingleStack".into());
    if let Some(Value::Array(families)) = spec.get_mut("ipFamilies")
        && let [first] = &families[..]
        && is_free
        && !is_single
    {
        let other = if first == "IPv4" { "IPv6" } else { "IPv4" };
        families.push(other.into());
    }
}

/// Checks the ports of the nodes a Service asks for, and gives it the others.
fn allocate_ports(
    others: &Others,
    server: &Server,
    spec: &mut Object,
    gives: bool,
) -> Result<(), StatusCause> {
    let mut taken = others.node_ports.clone();
    for (index, port) in ports(spec).iter().enumerate() {
        let Some(number) = node_port(port) else {
            continue;
        };
        if others.node_ports.contains(&number) {
            let field = format!("spec.ports[{index}].nodePort");
            let reason = "provided port is already allocated";
            return Err(StatusCause::invalid(&field, &number.into(), reason));
        }
        taken.push(number);
    }
    let missing = ports_mut(spec).filter(|port| !port.get("nodePort").is_some_and(|n| *n != 0));
    for port in missing.take_while(|_| gives) {
        let number = free_port(server, &taken).ok_or_else(|| {
            let reason = "failed to allocate a nodePort: range is full";
            StatusCause::invalid("spec.ports", &Value::Null, reason)
        })?;
        taken.push(number);
        port.insert("nodePort".into(), number.into());
    }
    Ok(())
}

/// Chooses a free port, beginning anywhere.
fn free_port(server: &Server, taken: &[u64]) -> Option<u64> {
    let span = usize::from(NODE_PORTS.end - NODE_PORTS.start);
    let first = server.random.number(span);
    let candidates = (0..span).map(|step| {
        let offset = (first + step) % span;
        u64::from(NODE_PORTS.start) + offset as u64
    });
    candidates.into_iter().find(|port| !taken.contains(port))
}

fn free(server: &Server, taken: &[String]) -> String {
    loop {
        let number = 1 + server.random.number(ADDRESSES - 2);
        let [_, high, middle, low] = (number as u32).to_be_bytes();
        let address = format!("10.{}.{middle}.{low}", 96 + high);
        if !taken.contains(&address) {
            return address;
        }
    }
}

pub(super) fn validate(object: &Object) -> Vec<StatusCause> {
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
        causes.push(StatusCause::unsupported("spec.type", kind, supported));
    }
    if kind == "ExternalName" && text("externalName").is_empty() {
        causes.push(StatusCause::required("spec.externalName", ""));
    }
    let needs_ports = kind != "ExternalName" && text("clusterIP") != "None";
    if needs_ports && ports.is_none_or(Vec::is_empty) {
        causes.push(StatusCause::required("spec.ports", ""));
    }
    for (at, port) in ports.into_iter().flatten().enumerate() {
        let number = port["port"].as_i64().unwrap_or(0);
        if !(1..=65535).contains(&number) {
            let message = "must be between 1 and 65535, inclusive";
            let field = format!("spec.ports[{at}].port");
            causes.push(StatusCause::invalid(&field, &number.into(), message));
        }
    }
    causes
}
