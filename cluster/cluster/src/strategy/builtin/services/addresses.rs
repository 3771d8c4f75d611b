//! Addresses inside the cluster.

use std::net::Ipv4Addr;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::object::{Object, metadata_text};
use serde_json::{Value, json};

use super::allocation::Allocation;
use super::spec::is_external;
use crate::status::ApiError;
use crate::strategy::builtin::parts::at;

/// The addresses of Services.
const RANGE: &str = "10.96.0.0/12";

/// The first address of the range.
const NETWORK: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 0);

/// The number of addresses in the range, without the first and the last.
const ADDRESSES: usize = 1 << 20;

/// Allocates the address a Service asks for, or a free one.
pub(super) fn allocate(allocation: &Allocation<'_>, object: &mut Object) -> Result<(), ApiError> {
    let asked = at(object, &["spec", "clusterIP"]).and_then(Value::as_str);
    let asked = asked.unwrap_or_default().to_owned();
    if is_external(object) || asked == "None" {
        return Ok(());
    }
    let taken = &allocation.others.addresses;
    if !asked.is_empty() {
        let problem = if !is_in_range(&asked) {
            if allocation.dry_run {
                format!(
                    "the provided IP ({asked}) is not in the valid range. The range of valid IPs is \
                     {RANGE}"
                )
            } else {
                // `MetaAllocator.getAllocator`, which looks for a range that has the address.
                "the provided network does not match the current range".to_owned()
            }
        // As the allocator's DryRun, which looks at the range only.
        } else if taken.contains(&asked) && !allocation.dry_run {
            "provided IP is already allocated".to_owned()
        } else {
            return Ok(());
        };
        let shown = at(object, &["spec", "clusterIPs"])
            .cloned()
            .unwrap_or_default();
        let detail = format!("failed to allocate IP {asked}: {problem}");
        let cause = StatusCause::invalid("spec.clusterIPs", &shown, &detail);
        let name = metadata_text(object, "name");
        return Err(ApiError::invalid(allocation.resource, name, &[cause]));
    }
    let address = free(allocation);
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("clusterIPs".into(), json!([address]));
        spec.insert("clusterIP".into(), address.into());
    }
    Ok(())
}

fn is_in_range(address: &str) -> bool {
    let first = u32::from(NETWORK) as usize;
    let number = address
        .parse::<Ipv4Addr>()
        .map(|address| u32::from(address) as usize);
    number.is_ok_and(|number| (first + 1..first + ADDRESSES - 1).contains(&number))
}

fn free(allocation: &Allocation<'_>) -> String {
    if allocation.dry_run {
        // `allocateNextService` does not look for a free one then.
        return NETWORK.to_string();
    }
    loop {
        // At random, as in Go: an address that was just released is not given to the next Service.
        let number = 1 + allocation.server.random.number(ADDRESSES - 2);
        let [_, high, middle, low] = (number as u32).to_be_bytes();
        let address = format!("10.{}.{middle}.{low}", 96 + high);
        if !allocation.others.addresses.contains(&address) {
            return address;
        }
    }
}
