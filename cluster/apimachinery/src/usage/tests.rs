//! Tables of what is counted, and of what quotas are about.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::{Quota, check_limits, pods, usage};
use crate::kinds::{Kinds, TableId};
use crate::object::Object;

fn object(value: &Value) -> &Object {
    value.as_object().expect("it is an object")
}

/// Returns what an object of the core group uses a while after 1970 began.
fn used(plural: &str, value: &Value, seconds: u64) -> Value {
    let kinds = Kinds::new(|_| TableId(0));
    let catalog = kinds.catalog();
    let mut all = catalog.all();
    let resource = all.find(|each| each.group.is_empty() && each.plural == plural);
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    usage(resource.expect("it is built in"), object(value), now).json()
}

/// Checks whether a quota with one scope is about an object.
fn check_scope(plural: &str, scope: &Value, value: &Value, expected: bool) {
    let kinds = Kinds::new(|_| TableId(0));
    let catalog = kinds.catalog();
    let mut all = catalog.all();
    let resource = all.find(|each| each.group.is_empty() && each.plural == plural);
    let quota = json!({"spec": {
        "hard": {plural: "1"}, "scopeSelector": {"matchExpressions": [scope]},
    }});
    let quota = Quota::read(object(&quota), SystemTime::UNIX_EPOCH);
    let used = quota.usage(resource.expect("it is built in"), object(value));
    assert_eq!(!used.is_empty(), expected, "{scope} {value}");
}

#[test]
fn resources_of_a_pod_and_its_overhead_are_summed_up() {
    let spec = json!({
        "overhead": {"cpu": "1", "memory": "1Gi", "example.com/a": "1"},
        "resources": {"requests": {"cpu": "5", "hugepages-2Mi": "6Mi"}, "limits": {"hugepages-2Mi": "6Mi"}},
        "containers": [
            {"resources": {"requests": {"cpu": "1", "hugepages-2Mi": "2Mi"}, "limits": {"cpu": "2", "memory": "0"}}},
            {"resources": {"limits": {"cpu": "1", "hugepages-2Mi": "2Mi"}}},
        ],
    });
    for (found, expected) in [
        (
            pods::total(&spec, "requests"),
            json!({"cpu": "6", "memory": "1Gi", "hugepages-2Mi": "6Mi", "example.com/a": "1"}),
        ),
        (
            pods::total(&spec, "limits"),
            json!({"cpu": "4", "memory": "0", "hugepages-2Mi": "6Mi"}),
        ),
        (
            pods::limited(&spec, "requests"),
            json!({"cpu": "5", "hugepages-2Mi": "2Mi"}),
        ),
        (
            pods::limited(&spec, "limits"),
            json!({"cpu": "3", "memory": "0", "hugepages-2Mi": "2Mi"}),
        ),
    ] {
        assert_eq!(found.json(), expected);
    }
    let range = json!({"spec": {"limits": [{"type": "Pod", "max": {"cpu": "5"}}]}});
    let pod = json!({"spec": {
        "overhead": {"cpu": "1"},
        "containers": [{"resources": {"requests": {"cpu": "5"}, "limits": {"cpu": "5"}}}],
    }});
    assert_eq!(check_limits(object(&range), "pods", object(&pod)), Ok(()));
}

#[test]
fn a_resized_pod_uses_the_most_of_what_it_asks_for_and_has() {
    let mut pod = json!({
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}}]},
        "status": {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "4"},
            "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "3"}}}]},
    });
    let held =
        |pod: &Value| ["requests", "limits"].map(|part| pods::held(object(pod), part).json());
    let expected = ["4", "3"].map(|cpu| json!({"cpu": cpu}));
    assert_eq!(held(&pod), expected);
    pod["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "8"}, "limits": {"cpu": "8"}});
    assert_eq!(held(&pod), ["8", "8"].map(|cpu| json!({"cpu": cpu})));
    pod["status"]["conditions"] = json!([{"type": "PodResizePending", "reason": "Infeasible"}]);
    assert_eq!(held(&pod), expected);
    pod["status"]["containerStatuses"][0]["name"] = "other".into();
    assert_eq!(held(&pod), ["8", "8"].map(|cpu| json!({"cpu": cpu})));
}

#[test]
fn a_pod_that_should_be_gone_uses_nothing() {
    let mut pod = json!({"metadata": {
        "deletionTimestamp": "1970-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30,
    }});
    assert_eq!(
        used("pods", &pod, 90),
        json!({"count/pods": "1", "pods": "1"})
    );
    assert_eq!(used("pods", &pod, 91), json!({"count/pods": "1"}));
    pod["metadata"] = json!({});
    pod["status"] = json!({"phase": "Failed"});
    assert_eq!(used("pods", &pod, 0), json!({"count/pods": "1"}));
}

#[test]
fn pods_that_request_nothing_are_best_effort() {
    let scope = json!({"scopeName": "BestEffort", "operator": "Exists"});
    let with = |resources: Value| json!({"spec": {"containers": [{"resources": resources}]}});
    for (pod, expected) in [
        (with(json!({})), true),
        (with(json!({"requests": {"cpu": "0"}})), true),
        (with(json!({"requests": {"cpu": "1"}})), false),
        (with(json!({"limits": {"example.com/a": "1"}})), true),
        (
            json!({"spec": {"containers": []}, "status": {"qosClass": "Burstable"}}),
            false,
        ),
    ] {
        check_scope("pods", &scope, &pod, expected);
    }
}

#[test]
fn claims_are_selected_by_their_classes_of_attributes() {
    let scope = |operator: &str, values: Value| json!({"scopeName": "VolumeAttributesClass", "operator": operator, "values": values});
    let none = json!({"spec": {}});
    let gold = json!({"spec": {"volumeAttributesClassName": "gold"}});
    let changing = json!({
        "spec": {"volumeAttributesClassName": "gold"},
        "status": {"currentVolumeAttributesClassName": "tin"},
    });
    for (operator, values, expected) in [
        ("Exists", json!([]), [false, true, true]),
        ("DoesNotExist", json!([]), [true, false, false]),
        ("In", json!(["tin"]), [false, false, true]),
        ("NotIn", json!(["gold"]), [true, false, true]),
    ] {
        let scope = scope(operator, values);
        for (claim, expected) in [&none, &gold, &changing].into_iter().zip(expected) {
            check_scope("persistentvolumeclaims", &scope, claim, expected);
        }
    }
    check_scope("pods", &scope("DoesNotExist", json!([])), &none, false);
}

#[test]
fn a_quota_needs_requests_unless_the_pod_has_resources_of_its_own() {
    let kinds = Kinds::new(|_| TableId(0));
    let catalog = kinds.catalog();
    let mut all = catalog.all();
    let pods = all.find(|each| each.group.is_empty() && each.plural == "pods");
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"cpu": "9"}}});
    let quota = Quota::read(object(&quota), SystemTime::UNIX_EPOCH);
    for (resources, is_enough) in [
        (json!({}), false),
        (json!({"requests": {"example.com/a": "1"}}), false),
        (json!({"requests": {"cpu": "1"}}), true),
    ] {
        let pod = json!({"spec": {"resources": resources, "containers": [{"name": "c"}]}});
        let found = quota.check(
            pods.expect("it is built in"),
            object(&pod),
            None,
            false,
            Default::default,
        );
        assert_eq!(found.is_ok(), is_enough, "{pod}: {found:?}");
    }
}
