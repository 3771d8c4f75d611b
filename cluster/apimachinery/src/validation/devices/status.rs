//! The status of a ResourceClaim.

use std::collections::HashSet;

use super::allocation::check_allocation;
use super::config::check_raw;
use super::lists::{self, check_set};
use super::names::{check_pool, check_uid};
use super::request::request_names;
use super::shapes::ALLOCATION;
use crate::go_text;
use crate::validation::addresses::check_interface_address;
use crate::validation::causes::Causes;
use crate::validation::conditions::check_conditions;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::{formats, volumes};

const MOST_CONSUMERS: usize = 256;
const MOST_CONDITIONS: usize = 8;
const MOST_ADDRESSES: usize = 16;
const MOST_INTERFACE_NAME: usize = 256;
const MOST_HARDWARE_ADDRESS: usize = 128;

/// Checks a status that is written over another one.
pub(super) fn check_status(context: &Context<'_>, causes: &mut Causes) {
    let status = context.get("status");
    let consumers = status.get("reservedFor");
    // Consumers are the same if their UID is; name and kind may repeat over time.
    let uid = |consumer: &Field<'_>| go_text::json(&consumer.text_of("uid").into());
    check_set(&consumers, MOST_CONSUMERS, causes, uid, |each, causes| {
        for member in ["resource", "name", "uid"] {
            causes.check_given(&each.get(member), "");
        }
    });
    let allocation = status.get("allocation");
    let results = allocation.get("devices").get("results");
    let allocated: HashSet<String> = results.items().map(|result| identity(&result)).collect();
    let devices = status.get("devices");
    // No limit of their own: a device must be allocated, and those are limited.
    check_set(&devices, usize::MAX, causes, identity, |device, causes| {
        check_device(device, &allocated, causes);
    });
    check_consumers(context, &consumers, &allocation, causes);
    let old = context.old("status").map(|old| old.get("allocation"));
    match old.filter(Field::is_set) {
        Some(old) if allocation.is_set() => {
            causes.check_immutable_struct(&allocation, &old, ALLOCATION);
        }
        // Checked when it is set and never again, since it cannot change afterwards.
        None if allocation.is_set() => {
            let names = request_names(&context.get("spec").get("devices"));
            check_allocation(&allocation, &names, causes);
        }
        _ => {}
    }
}

/// Returns the device, or the share of one, in the form of messages.
fn identity(device: &Field<'_>) -> String {
    let [driver, pool, name, share] = ["driver", "pool", "device", "shareID"]
        .map(|name| go_text::json(&device.text_of(name).into()));
    format!("{{\"Driver\":{driver},\"Pool\":{pool},\"Device\":{name},\"ShareID\":{share}}}")
}

/// Checks that reservations have an allocation, and are not added at deletion.
fn check_consumers(
    context: &Context<'_>,
    consumers: &Field<'_>,
    allocation: &Field<'_>,
    causes: &mut Causes,
) {
    if consumers.is_void() {
        return;
    }
    if !allocation.is_set() {
        let detail = "may not be specified when `allocated` is not set";
        causes.forbidden(consumers, detail);
        return;
    }
    let old = context.old("status").map(|old| old.get("reservedFor"));
    let was = old.as_ref().map_or(&[][..], Field::list);
    // Consumers may leave a claim that is being deleted, but none may join.
    let adds = consumers.list().iter().any(|each| !was.contains(each));
    if context.get("metadata").has("deletionTimestamp") && adds {
        let detail = "new entries may not be added while `deallocationRequested` or \
            `deletionTimestamp` are set";
        causes.forbidden(consumers, detail);
    }
}

fn check_device(device: &Field<'_>, allocated: &HashSet<String>, causes: &mut Causes) {
    volumes::check_driver(&device.get("driver"), causes);
    check_pool(&device.get("pool"), causes);
    causes.check_format(&device.get("device"), formats::dns_label);
    let share = device.get("shareID");
    if share.is_set() {
        check_uid(&share, causes);
    }
    let identity = identity(device);
    if !allocated.contains(&identity) {
        causes.invalid_struct(
            device,
            &identity,
            "must be an allocated device in the claim",
        );
    }
    let conditions = device.get("conditions");
    causes.check_count(&conditions, MOST_CONDITIONS);
    check_conditions(&conditions, causes);
    let data = device.get("data");
    if data.is_set() {
        check_raw(&data, false, causes);
    }
    check_network(&device.get("networkData"), causes);
}

fn check_network(data: &Field<'_>, causes: &mut Causes) {
    for (name, most) in [
        ("interfaceName", MOST_INTERFACE_NAME),
        ("hardwareAddress", MOST_HARDWARE_ADDRESS),
    ] {
        let at = data.get(name);
        if at.text().len() > most {
            causes.too_long(&at, most);
        }
    }
    let most = MOST_ADDRESSES;
    check_set(
        &data.get("ips"),
        most,
        causes,
        lists::text,
        check_interface_address,
    );
}
