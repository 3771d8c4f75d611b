//! The forms of this group's structures in messages, and the places of devices.

use serde_json::Value;

use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::pod::{TOLERATION, check_node_selector};
use crate::validation::structs::{Members, Shape};

const SELECTOR: Members = &[("cel", "CEL", Shape::Struct(CEL))];
const CEL: Members = &[("expression", "Expression", Shape::Text)];
const REQUIREMENTS: Members = &[("requests", "Requests", Shape::Value)];

// The order of the members is that of Go's struct, which its JSON shows.
const EXACTLY: Members = &[
    ("deviceClassName", "DeviceClassName", Shape::Text),
    ("selectors", "Selectors", Shape::List(SELECTOR)),
    ("allocationMode", "AllocationMode", Shape::Text),
    ("count", "Count", Shape::Number),
    ("adminAccess", "AdminAccess", Shape::Value),
    ("tolerations", "Tolerations", Shape::List(TOLERATION)),
    ("capacity", "Capacity", Shape::Struct(REQUIREMENTS)),
];

const ALTERNATIVE: Members = &[
    ("name", "Name", Shape::Text),
    ("deviceClassName", "DeviceClassName", Shape::Text),
    ("selectors", "Selectors", Shape::List(SELECTOR)),
    ("allocationMode", "AllocationMode", Shape::Text),
    ("count", "Count", Shape::Number),
    ("tolerations", "Tolerations", Shape::List(TOLERATION)),
    ("capacity", "Capacity", Shape::Struct(REQUIREMENTS)),
];

const REQUEST: Members = &[
    ("name", "Name", Shape::Text),
    ("exactly", "Exactly", Shape::Struct(EXACTLY)),
    ("firstAvailable", "FirstAvailable", Shape::List(ALTERNATIVE)),
];

const CONSTRAINT: Members = &[
    ("requests", "Requests", Shape::Value),
    ("matchAttribute", "MatchAttribute", Shape::Value),
    ("distinctAttribute", "DistinctAttribute", Shape::Value),
];

const OPAQUE: Members = &[
    ("driver", "Driver", Shape::Text),
    ("parameters", "Parameters", Shape::Value),
];

const CONFIG: Members = &[
    ("requests", "Requests", Shape::Value),
    ("opaque", "Opaque", Shape::Struct(OPAQUE)),
];

const DEVICES: Members = &[
    ("requests", "Requests", Shape::List(REQUEST)),
    ("constraints", "Constraints", Shape::List(CONSTRAINT)),
    ("config", "Config", Shape::List(CONFIG)),
];

/// The spec of a claim.
pub(super) const CLAIM_SPEC: Members = &[("devices", "Devices", Shape::Whole(DEVICES))];

/// The spec of a template of claims, without the metadata in it.
pub(super) const TEMPLATE_SPEC: Members = &[("spec", "Spec", Shape::Whole(CLAIM_SPEC))];

const RESULT: Members = &[
    ("request", "Request", Shape::Text),
    ("driver", "Driver", Shape::Text),
    ("pool", "Pool", Shape::Text),
    ("device", "Device", Shape::Text),
    ("adminAccess", "AdminAccess", Shape::Value),
    ("tolerations", "Tolerations", Shape::List(TOLERATION)),
    ("bindingConditions", "BindingConditions", Shape::Value),
    (
        "bindingFailureConditions",
        "BindingFailureConditions",
        Shape::Value,
    ),
    ("shareID", "ShareID", Shape::Value),
    ("consumedCapacity", "ConsumedCapacity", Shape::Value),
];

const RESULT_CONFIG: Members = &[
    ("source", "Source", Shape::Text),
    ("requests", "Requests", Shape::Value),
    ("opaque", "Opaque", Shape::Struct(OPAQUE)),
];

const RESULTS: Members = &[
    ("results", "Results", Shape::List(RESULT)),
    ("config", "Config", Shape::List(RESULT_CONFIG)),
];

const NODE_REQUIREMENT: Members = &[
    ("key", "Key", Shape::Text),
    ("operator", "Operator", Shape::Text),
    ("values", "Values", Shape::Value),
];

/// One term of a selector of nodes.
pub(super) const NODE_TERM: Members = &[
    (
        "matchExpressions",
        "MatchExpressions",
        Shape::List(NODE_REQUIREMENT),
    ),
    ("matchFields", "MatchFields", Shape::List(NODE_REQUIREMENT)),
];

const NODE_SELECTOR: Members = &[(
    "nodeSelectorTerms",
    "NodeSelectorTerms",
    Shape::List(NODE_TERM),
)];

/// The form of the allocation of a claim in messages.
pub(super) const ALLOCATION: Members = &[
    ("devices", "Devices", Shape::Whole(RESULTS)),
    ("nodeSelector", "NodeSelector", Shape::Struct(NODE_SELECTOR)),
    ("allocationTimestamp", "AllocationTimestamp", Shape::Value),
];

/// An attribute of a device.
pub(super) const ATTRIBUTE: Members = &[
    // The internal type names these otherwise than the API.
    ("int", "IntValue", Shape::Value),
    ("bool", "BoolValue", Shape::Value),
    ("string", "StringValue", Shape::Value),
    ("version", "VersionValue", Shape::Value),
    ("ints", "IntValues", Shape::Value),
    ("bools", "BoolValues", Shape::Value),
    ("strings", "StringValues", Shape::Value),
    ("versions", "VersionValues", Shape::Value),
];

/// The members, of those that say where devices are, that have a value.
#[derive(Debug, Default)]
pub(super) struct Placement {
    set: Vec<&'static str>,
}

impl Placement {
    /// Checks the name of a node.
    pub(super) fn check_name(&mut self, at: &Field<'_>, if_empty: &str, causes: &mut Causes) {
        if !at.is_set() {
            return;
        }
        if at.is_void() {
            causes.invalid(at, if_empty);
            return;
        }
        // An empty name is reported as wrong and does not count as a choice.
        self.set.push("`nodeName`");
        causes.check_format(at, formats::dns_subdomain);
    }

    /// Checks a selector of nodes.
    pub(super) fn check_selector(&mut self, at: &Field<'_>, causes: &mut Causes) {
        if at.is_set() {
            self.set.push("`nodeSelector`");
            check_node_selector(at, false, causes);
        }
    }

    /// Checks a member that can be nothing but true.
    pub(super) fn check_flag(&mut self, at: &Field<'_>, label: &'static str, causes: &mut Causes) {
        match at.value() {
            Value::Bool(true) => self.set.push(label),
            Value::Bool(false) => causes.invalid(at, "must be either unset or set to true"),
            _ => {}
        }
    }

    /// Checks that one of them has a value, in the words for none and for several.
    pub(super) fn check_one(&self, at: &Field<'_>, rules: [&str; 2], causes: &mut Causes) {
        match self.set.len() {
            0 => causes.required(at, rules[0]),
            1 => {}
            _ => causes.invalid_as(at, format!("{{{}}}", self.set.join(", ")), rules[1]),
        }
    }
}
