//! Ports of the nodes.

use std::collections::HashMap;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::object::{Object, metadata_text};
use serde_json::{Value, json};

use super::allocation::Allocation;
use super::spec::{kind, needs_check, node_port, ports, spec_mut};
use crate::status::ApiError;
use crate::strategy::builtin::parts::at;

/// The ports of nodes that Services may have.
const NODE_PORTS: std::ops::Range<i64> = 30000..32768;

/// The reason for which a port cannot be had.
const TAKEN: &str = "provided port is already allocated";
const OUTSIDE: &str =
    "provided port is not in the valid range. The range of valid ports is 30000-32767";

/// The ports that one write takes.
struct PortAllocation<'a> {
    allocation: &'a Allocation<'a>,
    /// Those of other Services, and those taken so far.
    taken: Vec<i64>,
    /// Those taken so far.
    own: Vec<i64>,
}

impl PortAllocation<'_> {
    /// Allocates the port that was asked for.
    fn take(&mut self, number: i64) -> Result<(), &'static str> {
        if self.taken.contains(&number) {
            return Err(TAKEN);
        }
        // A dry run does not get to the range.
        if !NODE_PORTS.contains(&number) && !self.allocation.dry_run {
            return Err(OUTSIDE);
        }
        self.taken.push(number);
        self.own.push(number);
        Ok(())
    }

    /// Allocates a free port, beginning anywhere.
    fn next(&mut self) -> Result<i64, ApiError> {
        if self.allocation.dry_run {
            // `PortAllocationOperation.AllocateNext` makes a number up, which need not be in the range.
            let number = self.own.iter().max().map_or(NODE_PORTS.end, |last| *last) + 1;
            self.own.push(number);
            return Ok(number);
        }
        let span = NODE_PORTS.end - NODE_PORTS.start;
        let first = self
            .allocation
            .server
            .random
            .number(span.unsigned_abs() as usize) as i64;
        let mut candidates = (0..span).map(|step| NODE_PORTS.start + (first + step) % span);
        let number = candidates.find(|port| !self.taken.contains(port));
        let number = number.ok_or_else(|| {
            ApiError::internal_error("failed to allocate a nodePort: range is full")
        })?;
        self.taken.push(number);
        Ok(number)
    }
}

/// Checks the ports of the nodes a Service asks for, and gives it those it lacks.
pub(super) fn allocate(
    allocation: &Allocation<'_>,
    old: Option<&Object>,
    object: &mut Object,
) -> Result<(), ApiError> {
    let own = old.and_then(|old| old.get("spec")?.as_object());
    let own: Vec<i64> = own
        .map_or(&[] as &[_], ports)
        .iter()
        .filter_map(node_port)
        .collect();
    let mut taking = PortAllocation {
        allocation,
        taken: allocation.others.node_ports.clone(),
        own: Vec::new(),
    };
    if matches!(kind(object), "NodePort" | "LoadBalancer") {
        if old.is_none() {
            allocate_new(&mut taking, object)?;
        } else {
            allocate_changed(&mut taking, &own, object)?;
        }
    }
    if needs_check(object) && !old.is_some_and(needs_check) {
        allocate_check(&mut taking, object)?;
    }
    Ok(())
}

/// Returns whether a Service gets ports of the nodes unasked.
fn gives(object: &Object) -> bool {
    let declined = at(object, &["spec", "allocateLoadBalancerNodePorts"]);
    kind(object) == "NodePort" || declined != Some(&Value::Bool(false))
}

fn set(object: &mut Object, index: usize, number: i64) {
    spec_mut(object)["ports"][index]["nodePort"] = number.into();
}

fn refuse(
    taking: &PortAllocation<'_>,
    object: &Object,
    index: usize,
    number: i64,
    why: &str,
) -> ApiError {
    let field = format!("spec.ports[{index}].nodePort");
    let cause = StatusCause::invalid(&field, &number.into(), why);
    let name = metadata_text(object, "name");
    ApiError::invalid(taking.allocation.resource, name, &[cause])
}

/// Ports of the same number share one of the nodes, unless they ask for others.
fn allocate_new(taking: &mut PortAllocation<'_>, object: &mut Object) -> Result<(), ApiError> {
    let spec = object.get("spec").and_then(Value::as_object);
    let list = spec.map_or(&[] as &[_], ports).to_vec();
    let gives = gives(object);
    let mut shared: HashMap<i64, i64> = HashMap::new();
    for (index, port) in list.iter().enumerate() {
        let own = node_port(port);
        // As initNodePorts: nothing is given, but what is asked for is respected.
        if own.is_none() && !gives {
            continue;
        }
        let number = port["port"].as_i64().unwrap_or(0);
        match shared.get(&number) {
            None => {
                let mut same = list.iter().filter(|other| other["port"] == port["port"]);
                let taken = match same.find_map(node_port) {
                    Some(asked) => {
                        let took = taking.take(asked);
                        took.map_err(|why| refuse(taking, object, index, asked, why))?;
                        asked
                    }
                    None => taking.next()?,
                };
                shared.insert(number, taken);
                set(object, index, taken);
            }
            Some(taken) => match own {
                None => set(object, index, *taken),
                Some(asked) if asked != *taken => {
                    let took = taking.take(asked);
                    took.map_err(|why| refuse(taking, object, index, asked, why))?;
                }
                Some(_) => {}
            },
        }
    }
    Ok(())
}

fn allocate_changed(
    taking: &mut PortAllocation<'_>,
    own: &[i64],
    object: &mut Object,
) -> Result<(), ApiError> {
    let spec = object.get("spec").and_then(Value::as_object);
    let list = spec.map_or(&[] as &[_], ports).to_vec();
    let gives = gives(object);
    let (mut asked_before, mut seen) = (Vec::new(), Vec::new());
    // Its own ports must not be given to it once more. To ask for one of them is fine.
    taking.taken.extend(own);
    for (index, port) in list.iter().enumerate() {
        let number = match node_port(port) {
            None if !gives => continue,
            None => {
                let number = taking.next()?;
                set(object, index, number);
                number
            }
            Some(asked) => {
                if !own.contains(&asked) && !asked_before.contains(&asked) {
                    let took = taking.take(asked);
                    took.map_err(|why| refuse(taking, object, index, asked, why))?;
                    asked_before.push(asked);
                }
                asked
            }
        };
        let key = json!([port["protocol"], number]);
        // Protocols have their own ports, so the same number may be there for each.
        if seen.contains(&key) {
            let protocol = port["protocol"].as_str().unwrap_or_default();
            let message = format!("duplicate nodePort: {{{protocol} {number}}}");
            return Err(ApiError::internal(message));
        }
        seen.push(key);
    }
    Ok(())
}

/// Allocates the port at which the nodes report whether they have Pods of the Service.
fn allocate_check(taking: &mut PortAllocation<'_>, object: &mut Object) -> Result<(), ApiError> {
    let asked = at(object, &["spec", "healthCheckNodePort"]).and_then(Value::as_i64);
    match asked.filter(|asked| *asked != 0) {
        Some(asked) => taking.take(asked).map_err(|why| {
            ApiError::internal_error(format!(
                "failed to allocate requested HealthCheck NodePort {asked}: {why}"
            ))
        }),
        None => {
            spec_mut(object)["healthCheckNodePort"] = taking.next()?.into();
            Ok(())
        }
    }
}
