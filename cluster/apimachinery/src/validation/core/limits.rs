//! LimitRanges.

use std::collections::{BTreeSet, HashSet};

use crate::quantity::Quantity;
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::resources::{self, amount};

pub(in crate::validation) fn limit_range(context: &Context<'_>, causes: &mut Causes) {
    let mut kinds = HashSet::new();
    for limit in context.get("spec").get("limits").items() {
        let kind = limit.get("type");
        check_type(&kind, causes);
        if !kinds.insert(kind.text()) {
            // The limit is checked nevertheless.
            causes.duplicate_as(&kind, kind.text());
        }
        check_limit(&limit, causes);
    }
}

fn check_type(kind: &Field<'_>, causes: &mut Causes) {
    let before = causes.count();
    causes.check_format(kind, formats::qualified_name);
    let standard = matches!(kind.text(), "Pod" | "Container" | "PersistentVolumeClaim");
    // `validateLimitRangeTypeName` says nothing more about a name of a wrong form.
    if causes.count() == before && !standard && !kind.text().contains('/') {
        causes.invalid(kind, "must be a standard limit type or fully qualified");
    }
}

const AMOUNTS: [&str; 5] = [
    "max",
    "min",
    "default",
    "defaultRequest",
    "maxLimitRequestRatio",
];

fn check_limit(limit: &Field<'_>, causes: &mut Causes) {
    let kind = limit.text_of("type");
    let of_containers = matches!(kind, "Pod" | "Container");
    let mut names = BTreeSet::new();
    for member in AMOUNTS {
        let amounts = limit.get(member);
        if kind == "Pod" && member.starts_with("default") {
            if !amounts.is_void() {
                causes.forbidden(&amounts, "may not be specified when `type` is 'Pod'");
            }
            continue;
        }
        for (name, at) in amounts.entries() {
            if of_containers {
                // Limits of containers are for what containers can have; other types may limit any resource.
                resources::check_container_name(&at, name, causes);
            } else {
                resources::check_name(&at, name, causes);
            }
            names.insert(name);
        }
    }
    let storage = limit.get("min").has("storage") || limit.get("max").has("storage");
    if kind == "PersistentVolumeClaim" && !storage {
        let detail =
            "either minimum or maximum storage value is required, but neither was provided";
        // There is no such member; Go builds the path this way.
        causes.required(&limit.get("limits"), detail);
    }
    for name in names {
        check_order(limit, kind, name, causes);
    }
}

/// Pairs of which the first may not be above the second: members, where the cause is, whose value it shows, and the
/// text between the two amounts.
type Pair = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

// The order of `ValidateLimitRange`, in which a resource may have several causes.
const PAIRS: [Pair; 6] = [
    (
        "min",
        "max",
        "min",
        "min",
        "min value {} is greater than max value {}",
    ),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    (
        "min",
        "default",
        "default",
        "min",
        "min value {} is greater than default value {}",
    ),
    (
        "default",
        "max",
        "default",
        "max",
        "default value {} is greater than max value {}",
    ),
];

/// Checks the amounts of one resource against each other.
fn check_order<'a>(limit: &Field<'a>, kind: &str, name: &'a str, causes: &mut Causes) {
    let value = |member: &'static str| -> Option<Quantity> {
        // Defaults of Pods are forbidden above, and not compared.
        let skipped = kind == "Pod" && member.starts_with("default");
        let at = limit.get(member).with(limit.member(member).get(name)?);
        (!skipped).then(|| amount(&at))
    };
    let mut invalid = |member: &'static str, shown: Quantity, detail: &str| {
        let at = limit.get(member);
        causes.invalid_as(&at.key(name), shown.to_string(), detail);
    };
    for (low, high, at, shown, text) in PAIRS {
        if let (Some(low), Some(high), Some(shown)) = (value(low), value(high), value(shown))
            && low > high
        {
            let detail =
                text.replacen("{}", &low.to_string(), 1)
                    .replacen("{}", &high.to_string(), 1);
            invalid(at, shown, &detail);
        }
    }
    if let Some(ratio) = value("maxLimitRequestRatio") {
        let one = Quantity::parse("1").unwrap_or(Quantity::ZERO);
        if ratio < one {
            let detail = format!("ratio {ratio} is less than 1");
            invalid("maxLimitRequestRatio", ratio, &detail);
        }
        if let (Some(min), Some(max)) = (value("min"), value("max"))
            && ratio.ratio(one) > max.ratio(min)
        {
            let most = max.ratio(min);
            let detail = format!("ratio {ratio} is greater than max/min = {most:.6}");
            invalid("maxLimitRequestRatio", ratio, &detail);
        }
    }
    if let (Some(limit), Some(request)) = (value("default"), value("defaultRequest"))
        // Such a resource has one amount, which is request and limit at once.
        && !resources::may_overcommit(name)
        && limit != request
    {
        let detail =
            format!("default value {limit} must equal to defaultRequest value {request} in {name}");
        invalid("defaultRequest", request, &detail);
    }
}
