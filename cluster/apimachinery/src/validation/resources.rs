//! Names and amounts of resources.

use super::causes::Causes;
use super::field::Field;
use super::formats;
use crate::quantity::Quantity;

// `standardResources`: what may be named without a domain. `storage` is here, but not in quotas.
const STANDARD: &str = "cpu memory ephemeral-storage requests.cpu requests.memory \
    requests.ephemeral-storage limits.cpu limits.memory limits.ephemeral-storage pods \
    resourcequotas services replicationcontrollers secrets configmaps persistentvolumeclaims storage \
    requests.storage services.nodeports services.loadbalancers";

// `standardQuotaResources`. Counts of other objects (`count/jobs.batch`) have a slash, and pass as qualified names.
const QUOTA: &str = "cpu memory ephemeral-storage requests.cpu requests.memory requests.storage \
    requests.ephemeral-storage limits.cpu limits.memory limits.ephemeral-storage pods \
    resourcequotas services replicationcontrollers secrets persistentvolumeclaims configmaps \
    services.nodeports services.loadbalancers";

// `integerResources`.
const WHOLE: &str = "pods resourcequotas services replicationcontrollers secrets configmaps \
    persistentvolumeclaims services.nodeports services.loadbalancers";

fn is_in(names: &str, name: &str) -> bool {
    names.split(' ').any(|each| each == name)
}

// `IsQuotaHugePageResourceName`; limits of huge pages cannot differ from requests, so `limits.hugepages-` is no quota.
fn is_quota_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-") || name.starts_with("requests.hugepages-")
}

/// Returns whether a resource is memory in pages of a certain size.
pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Returns whether a resource is one of Kubernetes itself.
// `IsNativeResource` searches anywhere in the name, so `my.kubernetes.io/x` is native as well.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns whether a limit of a resource may be above the request.
pub(crate) fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Returns whether a quota may be about a resource of Kubernetes itself.
pub(crate) fn is_quota_resource(name: &str) -> bool {
    is_in(QUOTA, name) || is_quota_huge_page(name)
}

/// Returns whether a name is an extended resource that quotas can limit.
// `IsExtendedResourceName`: the name must still be qualified with the prefix of quotas, which makes its domain longer.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name)
        // Otherwise `requests.example.com/gpu` in a quota could mean the request of one resource or another resource.
        && !name.starts_with("requests.")
        && formats::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Checks the name of any resource, and returns whether it is one.
// `validateResourceName`. Names with a slash are not looked up anywhere.
pub(crate) fn check_name(at: &Field<'_>, name: &str, causes: &mut Causes) -> bool {
    let before = causes.count();
    causes.check_format_of(at, name, formats::qualified_name);
    let standard = name.contains('/') || is_in(STANDARD, name) || is_quota_huge_page(name);
    // Go returns after a wrong form; an unknown name is not reported on top of it.
    if causes.count() == before && !standard {
        let detail = "must be a standard resource type or fully qualified";
        causes.invalid_as(at, name, detail);
    }
    causes.count() == before
}

/// Checks the name of a resource of containers.
// `validateContainerResourceName` goes on after a wrong name, so `Foo Bar` gets two causes.
pub(crate) fn check_container_name(at: &Field<'_>, name: &str, causes: &mut Causes) {
    check_name(at, name, causes);
    if !name.contains('/') {
        let standard = matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_huge_page(name);
        if !standard {
            causes.invalid_as(at, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        causes.invalid_as(at, name, "doesn't follow extended resource name standard");
    }
}

/// Checks the name of a resource of whole Pods.
// `validatePodResourceName` stops after a wrong name, unlike that of containers.
pub(crate) fn check_pod_name(at: &Field<'_>, name: &str, causes: &mut Causes) {
    let supported = matches!(name, "cpu" | "memory") || is_huge_page(name);
    if check_name(at, name, causes) && !supported {
        // The prefix stands for all page sizes in the list of `SupportedPodLevelResources`.
        causes.unsupported_as(at, name, &["cpu", "hugepages-", "memory"]);
    }
}

/// Checks the name of a resource that is limited by a quota.
// `ValidateResourceQuotaResourceName`.
pub(crate) fn check_quota_name(at: &Field<'_>, name: &str, causes: &mut Causes) {
    check_name(at, name, causes);
    if !name.contains('/') && !is_quota_resource(name) {
        causes.invalid_as(at, name, "must be a standard resource for quota");
    }
}

/// Reads an amount; a missing one is zero.
pub(crate) fn amount(at: &Field<'_>) -> Quantity {
    let text = match at.value() {
        serde_json::Value::String(text) => text.clone(),
        // Quantities may be numbers in JSON (`cpu: 1`).
        serde_json::Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    // What cannot be parsed was refused when the object was read, before validation.
    Quantity::parse(&text).unwrap_or(Quantity::ZERO)
}

/// Checks an amount of a resource.
// `ValidateResourceQuantityValue`. Go tests `MilliValue() % 1000`, which rounds up: `1.0000001` is not whole either.
pub(crate) fn check_amount(at: &Field<'_>, name: &str, causes: &mut Causes) {
    let amount = amount(at);
    check_not_negative(at, causes);
    if (is_in(WHOLE, name) || is_extended(name)) && !amount.has_whole_thousandths() {
        causes.invalid_as(at, amount.to_string(), "must be an integer");
    }
}

/// Checks that an amount is not below zero.
pub(crate) fn check_not_negative(at: &Field<'_>, causes: &mut Causes) {
    let amount = amount(at);
    if amount < Quantity::ZERO {
        let detail = "must be greater than or equal to 0";
        causes.invalid_as(at, amount.to_string(), detail);
    }
}

/// Checks that an amount is above zero, and returns whether it is.
pub(crate) fn check_positive(at: &Field<'_>, causes: &mut Causes) -> bool {
    let amount = amount(at);
    if amount <= Quantity::ZERO {
        causes.invalid_as(at, amount.to_string(), "must be greater than zero");
    }
    amount > Quantity::ZERO
}

/// Checks that an amount, rounded to a whole number, is not below zero.
// `validateBasicResource`.
pub(crate) fn check_basic(at: &Field<'_>, causes: &mut Causes) -> bool {
    let whole = amount(at).rounded();
    if whole < 0 {
        causes.invalid_as(at, whole, "must be a valid resource quantity");
    }
    whole >= 0
}

/// Returns whether an amount is a multiple of the page size in the resource's name.
// `IsHugePageResourceValueDivisible`; a name whose size is no positive number of bytes has no pages at all.
pub(crate) fn is_whole_pages(name: &str, amount: Quantity) -> bool {
    let size = name.strip_prefix("hugepages-").and_then(Quantity::parse);
    let size = size.filter(|size| *size > Quantity::ZERO && size.has_whole_thousandths());
    size.is_some_and(|size| amount.rounded() % size.rounded() == 0)
}
