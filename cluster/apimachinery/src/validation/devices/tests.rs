use serde_json::{Value, json};

use crate::validation::context::Part;
use crate::validation::testing::{check_created, check_part, check_updated};

const GROUP: &str = "resource.k8s.io/v1";

/// Checks what is wrong with a new claim of some devices.
fn check_claim(devices: &Value, expected: &[&str]) {
    let claim = json!({"spec": {"devices": devices}});
    check_created(GROUP, "ResourceClaim", claim, expected);
    let template = json!({"spec": {"spec": {"devices": devices}}});
    let expected: Vec<String> = expected
        .iter()
        .map(|text| text.replacen("spec.", "spec.spec.", 1))
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check_created(GROUP, "ResourceClaimTemplate", template, &expected);
}

fn exactly(members: &Value) -> Value {
    let mut request = json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1});
    let members = members.as_object().expect("an object").clone();
    request.as_object_mut().expect("an object").extend(members);
    json!({"requests": [{"name": "a", "exactly": request}]})
}

#[test]
fn a_claim_asks_in_one_way_for_devices_of_a_class() {
    check_claim(&json!({}), &[]);
    check_claim(&exactly(&json!({})), &[]);
    check_claim(
        &exactly(&json!({"deviceClassName": "", "count": 0})),
        &[
            "spec.devices.requests[0].exactly.count: Invalid value: 0: must be greater than zero",
            "spec.devices.requests[0].exactly.deviceClassName: Required value",
        ],
    );
    check_claim(
        &exactly(&json!({"allocationMode": "All"})),
        &[
            "spec.devices.requests[0].exactly.count: Invalid value: 1: must not be specified when \
           allocationMode is 'All'",
        ],
    );
    check_claim(
        &exactly(&json!({"allocationMode": "Some"})),
        &[
            "spec.devices.requests[0].exactly.allocationMode: Unsupported value: \"Some\": \
           supported values: \"All\", \"ExactCount\"",
        ],
    );
    check_claim(
        &json!({"requests": [{"name": "a"}, {"name": "A"}, {"name": "a"}]}),
        &[
            "spec.devices.requests[0]: Required value: exactly one of `exactly` or",
            "spec.devices.requests[1].name: Invalid value: \"A\": a lowercase RFC 1123 label",
            "spec.devices.requests[1]: Required value: exactly one of `exactly` or",
            "spec.devices.requests[2]: Duplicate value: \"a\"",
            "spec.devices.requests[2]: Required value: exactly one of `exactly` or",
        ],
    );
    let mut both = exactly(&json!({}));
    both["requests"][0]["firstAvailable"] = json!([{"name": "b"}]);
    check_claim(
        &both,
        &["spec.devices.requests[0]: Invalid value: null: exactly one of"],
    );
}

#[test]
fn selectors_and_tolerations_of_requests_are_checked() {
    check_claim(
        &exactly(
            &json!({"selectors": [{}, {"cel": {"expression": "device.driver =="}},
            {"cel": {"expression": "nothing.a"}}, {"cel": {"expression": "'a'"}},
            {"cel": {"expression": "device.attributes['a.b'].c"}},
            {"cel": {"expression": "cel.bind(a, device.attributes['a'], a.b && a.c)"}}]}),
        ),
        &[
            "spec.devices.requests[0].exactly.selectors[0].cel: Required value",
            "spec.devices.requests[0].exactly.selectors[1].cel.expression: Invalid value: \
             \"device.driver ==\": compilation failed: ",
            "spec.devices.requests[0].exactly.selectors[2].cel.expression: Invalid value: \
             \"nothing.a\": compilation failed: ",
            "spec.devices.requests[0].exactly.selectors[3].cel.expression: Invalid value: \"'a'\": \
             must evaluate to bool or the unknown type, not string",
        ],
    );
    check_claim(
        &exactly(
            &json!({"tolerations": [{"operator": "Exists", "value": "a"},
            {"operator": "Is", "key": "/"}, {"operator": "Equal", "value": "-", "effect": "No"}]}),
        ),
        &[
            "spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: \"a\": must be \
             empty for operator `Exists`",
            "spec.devices.requests[0].exactly.tolerations[1].key: Invalid value: \"/\": name part",
            "spec.devices.requests[0].exactly.tolerations[1].key: Invalid value: \"/\": name part",
            "spec.devices.requests[0].exactly.tolerations[1].key: Invalid value: \"/\": prefix part",
            "spec.devices.requests[0].exactly.tolerations[1].operator: Unsupported value: \"Is\"",
            "spec.devices.requests[0].exactly.tolerations[2].effect: Unsupported value: \"No\"",
            "spec.devices.requests[0].exactly.tolerations[2].value: Invalid value: \"-\"",
        ],
    );
}

#[test]
fn constraints_and_configurations_name_requests_of_the_claim() {
    let requests = json!([{"name": "a", "firstAvailable": [
        {"name": "b", "deviceClassName": "gpu", "allocationMode": "All"}]}]);
    check_claim(
        &json!({"requests": requests, "constraints": [
            {"requests": ["a", "a/b", "a/c", "d", "a/b/c", "a"], "matchAttribute": "a.b/c"},
            {}, {"matchAttribute": "a"}, {"distinctAttribute": "/1"}]}),
        &[
            "spec.devices.constraints[0].requests[2]: Invalid value: \"a/c\": must be the name",
            "spec.devices.constraints[0].requests[3]: Invalid value: \"d\": must be the name",
            "spec.devices.constraints[0].requests[4]: Invalid value: \"a/b/c\": must be the name",
            "spec.devices.constraints[0].requests[5]: Duplicate value: \"a\"",
            "spec.devices.constraints[1]: Required value: exactly one of",
            "spec.devices.constraints[2].matchAttribute: Invalid value: \"a\": a fully qualified",
            "spec.devices.constraints[3].distinctAttribute: Invalid value: \"\": the domain must",
            "spec.devices.constraints[3].distinctAttribute: Invalid value: \"1\": a valid C",
        ],
    );
    check_claim(
        &json!({"config": [{}, {"opaque": {"driver": "", "parameters": []}},
            {"opaque": {"driver": "a.b", "parameters": {"c": "d".repeat(10 << 10)}}}]}),
        &[
            "spec.devices.config[0].opaque: Required value",
            "spec.devices.config[1].opaque.driver: Required value",
            "spec.devices.config[1].opaque.parameters: Invalid value: \"<value omitted>\": must be",
            "spec.devices.config[2].opaque.parameters: Too long: may not be more than 10240 bytes",
        ],
    );
}

#[test]
fn a_template_is_checked_again_and_cannot_change() {
    let old = json!({"spec": {"spec": {"devices": {}}}});
    let new = json!({"spec": {"metadata": {"labels": {"a": "-"}, "finalizers": ["a/b"]},
        "spec": {"devices": {"requests": [{"name": "a"}]}}}});
    let label = "spec.metadata.labels: Invalid value: \"-\": a valid label must be";
    let expected = [
        "spec.metadata.finalizers: Forbidden: cannot be set",
        label,
        "spec.spec.devices.requests[0]: Required value: exactly one of `exactly` or",
    ];
    check_created(GROUP, "ResourceClaimTemplate", new.clone(), &expected);
    let immutable = "spec: Invalid value: {";
    let expected = [&expected[..], &[immutable]].concat();
    check_updated(GROUP, "ResourceClaimTemplate", &old, new, &expected);
}

#[test]
fn the_spec_of_a_claim_cannot_change() {
    let old = json!({"spec": {"devices": {}}});
    let new = json!({"spec": {"devices": {"requests": [{"name": "-"}]}}});
    check_updated(
        GROUP,
        "ResourceClaim",
        &old,
        new,
        &[
            "spec: Invalid value: {\"Devices\":{\"Requests\":[{\"Name\":\"-\",\"Exactly\":null,\
           \"FirstAvailable\":null}],\"Constraints\":null,\"Config\":null}}: field is immutable",
        ],
    );
}

fn check_status(old: &Value, status: &Value, expected: &[&str]) {
    let object = |status: &Value| {
        let devices = json!({"requests": [{"name": "a"}]});
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"devices": devices}, "status": status})
    };
    let kind = (GROUP, "ResourceClaim", Part::Status);
    check_part(kind, &object(old), object(status), expected);
}

#[test]
fn what_is_allocated_and_reserved_is_checked() {
    let result = json!({"request": "a", "driver": "d.e", "pool": "p/q", "device": "x"});
    let allocation = json!({"devices": {"results": [result]}});
    check_status(&json!({}), &json!({"allocation": allocation}), &[]);
    check_status(
        &json!({}),
        &json!({"allocation": {"devices": {"results": [{"request": "b", "driver": "",
            "pool": "", "device": "", "shareID": "1", "bindingConditions": ["a", "a"]}],
            "config": [{"source": "Me"}]}}}),
        &[
            "status.allocation.devices.config[0].opaque: Required value",
            "status.allocation.devices.config[0].source: Unsupported value: \"Me\"",
            "status.allocation.devices.results[0].bindingConditions[1]: Duplicate value: \"a\"",
            "status.allocation.devices.results[0].bindingFailureConditions: Invalid value: null",
            "status.allocation.devices.results[0].device: Invalid value: \"\"",
            "status.allocation.devices.results[0].driver: Required value",
            "status.allocation.devices.results[0].pool: Required value",
            "status.allocation.devices.results[0].request: Invalid value: \"b\": must be the name",
            "status.allocation.devices.results[0].shareID: Invalid value: \"1\": error validating \
             uid: invalid UUID length: 1",
        ],
    );
    let consumer = json!({"resource": "pods", "name": "a", "uid": "1"});
    check_status(
        &json!({}),
        &json!({"reservedFor": [consumer, {"uid": "1"}]}),
        &[
            "status.reservedFor: Forbidden: may not be specified when `allocated` is not set",
            "status.reservedFor[1].name: Required value",
            "status.reservedFor[1].resource: Required value",
            "status.reservedFor[1]: Duplicate value: \"1\"",
        ],
    );
    check_status(
        &json!({"allocation": allocation}),
        &json!({"allocation": {"devices": {}}, "reservedFor": [consumer]}),
        &[
            "status.allocation: Invalid value: {\"Devices\":{\"Results\":null,\"Config\":null},",
            "status.reservedFor: Forbidden: new entries may not be added",
        ],
    );
}

#[test]
fn what_drivers_say_is_about_allocated_devices() {
    let result = json!({"request": "a", "driver": "d.e", "pool": "p", "device": "x"});
    let allocation = json!({"devices": {"results": [result]}});
    let device = json!({"driver": "d.e", "pool": "p", "device": "x"});
    check_status(
        &json!({}),
        &json!({"allocation": allocation, "devices": [device]}),
        &[],
    );
    let network =
        json!({"ips": ["10.0.0.1/8", "10.0.0.01/8", "a"], "interfaceName": "a".repeat(257)});
    check_status(
        &json!({}),
        &json!({"allocation": allocation, "devices": [
            {"driver": "d.e", "pool": "p", "device": "y", "data": 1, "networkData": network}]}),
        &[
            "status.devices[0].data: Invalid value: \"<value omitted>\": must be a valid JSON object",
            "status.devices[0].networkData.interfaceName: Too long",
            "status.devices[0].networkData.ips[1]: Invalid value: \"10.0.0.01/8\": must be in",
            "status.devices[0].networkData.ips[2]: Invalid value: \"a\": must be a valid address",
            "status.devices[0]: Invalid value: {\"Driver\":\"d.e\",\"Pool\":\"p\",\"Device\":\"y\",\
             \"ShareID\":\"\"}: must be an allocated device in the claim",
        ],
    );
}

#[test]
fn a_class_is_selected_by_expressions_and_may_be_an_extended_resource() {
    let class = |spec: Value| json!({"spec": spec});
    let resource = class(json!({"extendedResourceName": "a.b/c"}));
    check_created(GROUP, "DeviceClass", resource, &[]);
    let wrong = class(json!({"extendedResourceName": "cpu", "selectors": [{}], "config": [{}]}));
    check_created(
        GROUP,
        "DeviceClass",
        wrong,
        &[
            "spec.config[0].opaque: Required value",
            "spec.extendedResourceName: Invalid value: \"cpu\": must be a valid extended resource",
            "spec.selectors[0].cel: Required value",
        ],
    );
}

/// Checks what is wrong with a new slice for all nodes.
fn check_slice(members: &Value, expected: &[&str]) {
    let mut spec = json!({"driver": "d.e", "pool": {"name": "p", "resourceSliceCount": 1},
        "allNodes": true});
    let members = members.as_object().expect("an object").clone();
    spec.as_object_mut().expect("an object").extend(members);
    check_created(GROUP, "ResourceSlice", json!({"spec": spec}), expected);
}

#[test]
fn a_slice_is_for_nodes_in_one_way() {
    check_slice(&json!({}), &[]);
    check_slice(
        &json!({"allNodes": false, "pool": {"generation": -1}}),
        &[
            "spec.allNodes: Invalid value: false: must be either unset or set to true",
            "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero",
            "spec.pool.name: Required value",
            "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
            "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, \
             `perDeviceNodeSelection` is required",
        ],
    );
    check_slice(
        &json!({"nodeName": "a", "nodeSelector": {"nodeSelectorTerms": []}, "driver": "-"}),
        &[
            "spec.driver: Invalid value: \"-\"",
            "spec.nodeSelector.nodeSelectorTerms: Invalid value: []: must have exactly one node",
            "spec.nodeSelector.nodeSelectorTerms: Required value: must have at least one node",
            "spec: Invalid value: \"{`nodeName`, `nodeSelector`, `allNodes`}\": exactly one of \
             `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but",
        ],
    );
    check_slice(
        &json!({"sharedCounters": [{}, {"name": "a", "counters": {"B": {"value": "1"}}}],
            "devices": []}),
        &[
            "spec.sharedCounters[0].counters: Required value",
            "spec.sharedCounters[0].name: Required value",
            "spec.sharedCounters[1].counters: Invalid value: \"B\"",
            "spec: Invalid value: \"\": only one of `sharedCounters` or `devices` is allowed",
        ],
    );
    let spec = |node: &str, driver: &str| {
        json!({"spec": {"driver": driver, "nodeName": node,
        "pool": {"name": "p", "resourceSliceCount": 1}}})
    };
    check_updated(
        GROUP,
        "ResourceSlice",
        &spec("a", "d"),
        spec("b", "e"),
        &[
            "spec.driver: Invalid value: \"e\": field is immutable",
            "spec.nodeName: Invalid value: \"b\": field is immutable",
        ],
    );
}

#[test]
fn attributes_capacities_and_taints_of_devices_are_checked() {
    check_slice(
        &json!({"devices": [{"name": "a", "attributes": {"a.b/c": {"int": 1}, "1": {"string": ""},
            "d": {}, "e": {"int": 1, "version": "1.2"}}, "taints": [{"key": "", "effect": "No"}],
            "nodeName": "n", "capacity": {"m": {"value": "1", "requestPolicy": {}}},
            "consumesCounters": [{"counterSet": "", "counters": {}}]}]}),
        &[
            "spec.devices[0].attributes: Invalid value: \"1\": a valid C identifier must start",
            "spec.devices[0].attributes[d]: Invalid value: \"\": exactly one value must be",
            "spec.devices[0].attributes[e].version: Invalid value: \"1.2\": must be a string",
            "spec.devices[0].attributes[e]: Invalid value: {\"IntValue\":1,\"BoolValue\":null,",
            "spec.devices[0].capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must",
            "spec.devices[0].consumesCounters[0].counterSet: Required value",
            "spec.devices[0].consumesCounters[0].counters: Required value",
            "spec.devices[0].taints[0].effect: Unsupported value: \"No\": supported values: \
             \"NoExecute\", \"NoSchedule\", \"None\"",
            "spec.devices[0].taints[0].key: Invalid value: \"\": name part must be non-empty",
            "spec.devices[0].taints[0].key: Invalid value: \"\": name part must consist",
            "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can",
        ],
    );
    check_slice(
        &json!({"allNodes": null, "perDeviceNodeSelection": true, "devices": [
            {"name": "a"}, {"name": "b", "allNodes": true, "nodeName": "n"}]}),
        &[
            "spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or",
            "spec.devices[1]: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of",
        ],
    );
}

/// Checks what is wrong with the policy of a capacity of 10.
fn check_policy(policy: &Value, expected: &[&str]) {
    let devices = json!([{"name": "a", "allowMultipleAllocations": true,
        "capacity": {"m": {"value": "10", "requestPolicy": policy}}}]);
    let expected: Vec<String> = expected
        .iter()
        .map(|text| format!("spec.devices[0].capacity[m].requestPolicy{text}"))
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check_slice(&json!({"devices": devices}), &expected);
}

#[test]
fn requests_of_a_capacity_fit_in_it() {
    check_policy(&json!({"default": "2", "validValues": ["1", "2"]}), &[]);
    check_policy(
        &json!({"validValues": ["1"]}),
        &[".default: Required value: required when validValues is defined"],
    );
    check_policy(
        &json!({"default": "3", "validValues": ["2", "1", "11", "11"]}),
        &[
            ".validValues: Invalid value: \"3\": default value is not valid",
            ".validValues[1]: Invalid value: \"1\": values must be sorted in ascending order",
            ".validValues[2]: Invalid value: \"11\": option is larger than capacity value: 10",
            ".validValues[3]: Duplicate value: \"11\"",
            ".validValues[3]: Invalid value: \"11\": option is larger than capacity value: 10",
        ],
    );
    check_policy(
        &json!({"default": "4", "validRange": {"min": "2", "max": "8", "step": "2"}}),
        &[],
    );
    check_policy(
        &json!({"default": "1", "validRange": {"min": "12", "max": "11", "step": "3"}}),
        &[
            ".validRange.max: Invalid value: \"11\": max is larger than capacity value: 10",
            ".validRange.max: Invalid value: \"12\": min is larger than max: 11",
            ".validRange.min: Invalid value: \"1\": default is less than min: 12",
            ".validRange.min: Invalid value: \"12\": min is larger than capacity value: 10",
            ".validRange.step: Invalid value: \"1\": value is not a multiple of a given step (3)",
            ".validRange.step: Invalid value: \"11\": value is not a multiple of a given step (3)",
            ".validRange.step: Invalid value: \"3\": one step 15 is larger than capacity value: 10",
        ],
    );
    check_policy(
        &json!({"default": "1", "validValues": ["1"], "validRange": {"min": "1"}}),
        &[": Forbidden: exactly one policy can be specified"],
    );
}
