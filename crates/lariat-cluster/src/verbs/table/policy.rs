//! Rows of who may do what, and of what the server does to requests.

use super::age;
use super::column::{AGE, NAME, Printer, number, text, wide};
use super::row::{NONE, Row};

pub(super) const BINDINGS: Printer = Printer {
    columns: &[
        NAME,
        text("Role"),
        AGE,
        wide("Users"),
        wide("Groups"),
        wide("ServiceAccounts"),
    ],
    cells: |binding| {
        let role = binding.at("/roleRef");
        vec![
            binding.name().into(),
            format!("{}/{}", role.text("/kind"), role.text("/name")).into(),
            binding.age().into(),
            subjects(binding, "User").into(),
            subjects(binding, "Group").into(),
            subjects(binding, "ServiceAccount").into(),
        ]
    },
};

fn subjects(binding: Row<'_>, kind: &str) -> String {
    let subjects = binding
        .rows("/subjects")
        .filter(|subject| subject.text("/kind") == kind);
    let names: Vec<String> = subjects
        .map(|subject| match kind {
            "ServiceAccount" => {
                format!("{}/{}", subject.text("/namespace"), subject.text("/name"))
            }
            _ => subject.text("/name").to_owned(),
        })
        .collect();
    names.join(", ")
}

pub(super) const SIGNING_REQUESTS: Printer = Printer {
    columns: &[
        NAME,
        AGE,
        text("SignerName"),
        text("Requestor"),
        text("RequestedDuration"),
        text("Condition"),
    ],
    cells: |request| {
        let duration = request.get("/spec/expirationSeconds").as_i64();
        vec![
            request.name().into(),
            request.age().into(),
            request.text_or("/spec/signerName", NONE).into(),
            request.text("/spec/username").into(),
            duration.map_or(NONE.to_owned(), age::human).into(),
            request_condition(request).into(),
        ]
    },
};

fn request_condition(request: Row<'_>) -> String {
    let has = |kind: &str| {
        request
            .rows("/status/conditions")
            .any(|condition| condition.text("/type") == kind)
    };
    let mut text = if has("Denied") {
        "Denied".to_owned()
    } else if has("Approved") {
        "Approved".to_owned()
    } else {
        "Pending".to_owned()
    };
    if has("Failed") {
        text.push_str(",Failed");
    }
    if !request.text("/status/certificate").is_empty() {
        text.push_str(",Issued");
    }
    text
}

pub(super) const WEBHOOKS: Printer = Printer {
    columns: &[NAME, number("Webhooks"), AGE],
    cells: |configuration| {
        vec![
            configuration.name().into(),
            configuration.count("/webhooks").into(),
            configuration.age().into(),
        ]
    },
};

const UNSET: &str = "<unset>";

pub(super) const ADMISSION_POLICIES: Printer = Printer {
    columns: &[NAME, number("Validations"), text("ParamKind"), AGE],
    cells: |policy| {
        let kind = policy.at("/spec/paramKind");
        let parameters = if kind.has("/kind") {
            format!("{}/{}", kind.text("/apiVersion"), kind.text("/kind"))
        } else {
            UNSET.to_owned()
        };
        vec![
            policy.name().into(),
            policy.count("/spec/validations").into(),
            parameters.into(),
            policy.age().into(),
        ]
    },
};

pub(super) const ADMISSION_BINDINGS: Printer = Printer {
    columns: &[NAME, text("PolicyName"), text("ParamRef"), AGE],
    cells: |binding| {
        let parameters = binding.at("/spec/paramRef");
        let parameters = match (parameters.text("/namespace"), parameters.text("/name")) {
            ("", "") => UNSET.to_owned(),
            ("", name) => name.to_owned(),
            (namespace, name) => format!("{namespace}/{name}"),
        };
        vec![
            binding.name().into(),
            binding.text("/spec/policyName").into(),
            parameters.into(),
            binding.age().into(),
        ]
    },
};

pub(super) const FLOW_SCHEMAS: Printer = Printer {
    columns: &[
        NAME,
        text("PriorityLevel"),
        number("MatchingPrecedence"),
        text("DistinguisherMethod"),
        AGE,
        text("MissingPL"),
    ],
    cells: |schema| {
        let dangling = match schema.condition("/status/conditions", "Dangling") {
            "" => "?",
            status => status,
        };
        vec![
            schema.name().into(),
            schema
                .text_or("/spec/priorityLevelConfiguration/name", NONE)
                .into(),
            schema.number("/spec/matchingPrecedence").into(),
            schema
                .text_or("/spec/distinguisherMethod/type", NONE)
                .into(),
            schema.age().into(),
            dangling.into(),
        ]
    },
};

pub(super) const PRIORITY_LEVELS: Printer = Printer {
    columns: &[
        NAME,
        text("Type"),
        text("NominalConcurrencyShares"),
        text("Queues"),
        text("HandSize"),
        text("QueueLengthLimit"),
        AGE,
    ],
    cells: |level| {
        let limited = match level.text("/spec/type") {
            "Exempt" => level.at("/spec/exempt"),
            _ => level.at("/spec/limited"),
        };
        let queuing = limited.at("/limitResponse/queuing");
        vec![
            level.name().into(),
            level.text("/spec/type").into(),
            limited.scalar_or("/nominalConcurrencyShares", NONE).into(),
            queuing.scalar_or("/queues", NONE).into(),
            queuing.scalar_or("/handSize", NONE).into(),
            queuing.scalar_or("/queueLengthLimit", NONE).into(),
            level.age().into(),
        ]
    },
};

pub(super) const API_SERVICES: Printer = Printer {
    columns: &[NAME, text("Service"), text("Available"), AGE],
    cells: |service| {
        let reference = service.at("/spec/service");
        let backend = if reference.has("/name") {
            format!(
                "{}/{}",
                reference.text("/namespace"),
                reference.text("/name")
            )
        } else {
            "Local".to_owned()
        };
        let available = service
            .rows("/status/conditions")
            .find(|condition| condition.text("/type") == "Available");
        let available = match available {
            Some(condition) if condition.text("/status") != "True" => {
                format!(
                    "{} ({})",
                    condition.text("/status"),
                    condition.text("/reason")
                )
            }
            Some(_) => "True".to_owned(),
            None => "Unknown".to_owned(),
        };
        vec![
            service.name().into(),
            backend.into(),
            available.into(),
            service.age().into(),
        ]
    },
};
