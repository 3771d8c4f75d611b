//! FlowSchemas.

use super::{check_status, differs_from_mandatory};
use crate::object::metadata_text;
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::structs::{self, Members, Shape};

const LOWEST_PRECEDENCE: i64 = 10_000;

/// The schemas that the server needs: name and spec.
// `MandatoryFlowSchemas`.
const MANDATORY: &[(&str, &str)] = &[
    (
        "exempt",
        r#"{"priorityLevelConfiguration":{"name":"exempt"},"matchingPrecedence":1,"rules":[{
            "subjects":[{"kind":"Group","group":{"name":"system:masters"}}],
            "resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,
                "namespaces":["*"]}],
            "nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}]}"#,
    ),
    (
        "catch-all",
        r#"{"priorityLevelConfiguration":{"name":"catch-all"},"matchingPrecedence":10000,
            "distinguisherMethod":{"type":"ByUser"},"rules":[{
            "subjects":[{"kind":"Group","group":{"name":"system:unauthenticated"}},
                {"kind":"Group","group":{"name":"system:authenticated"}}],
            "resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,
                "namespaces":["*"]}],
            "nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}]}"#,
    ),
];

const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];

pub(in crate::validation) fn flow_schema(context: &Context<'_>, causes: &mut Causes) {
    // `ValidateFlowSchemaStatusUpdate` looks at the status alone.
    if !context.updates(Part::Status) {
        let (spec, name) = (context.get("spec"), metadata_text(context.object, "name"));
        check_flow(&spec, name, causes);
        // The server itself needs these schemas, and restores them if they are changed.
        if differs_from_mandatory(MANDATORY, &spec, name, &[]) {
            let detail = format!("spec of '{name}' must equal the fixed value");
            causes.invalid_struct(&spec, &structs::shown(spec.value(), FLOW), &detail);
        }
    }
    check_status(&context.get("status"), causes);
}

fn check_flow(spec: &Field<'_>, name: &str, causes: &mut Causes) {
    let precedence = spec.get("matchingPrecedence");
    let number = precedence.int().unwrap_or(0);
    if number <= 0 {
        causes.invalid_as(&precedence, number, "must be a positive value");
    }
    if number > LOWEST_PRECEDENCE {
        let detail = format!("must not be greater than {LOWEST_PRECEDENCE}");
        causes.invalid(&precedence, &detail);
    }
    // The lowest number wins, and nothing may come before the requests that are never limited.
    if number == 1 && name != "exempt" {
        let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
        causes.invalid(&precedence, detail);
    }
    let method = spec.get("distinguisherMethod");
    let methods = ["ByNamespace", "ByUser"];
    if method.is_set() && !methods.contains(&method.text_of("type")) {
        let shown = structs::shown(method.value(), METHOD);
        // Go shows the whole method at the path of its type.
        causes.unsupported_text(&method.get("type"), &shown, &methods);
    }
    let level = spec.get("priorityLevelConfiguration").get("name");
    if causes.check_given(&level, "must reference a priority level") {
        causes.check_format(&level, formats::dns_subdomain);
    }
    for rule in spec.get("rules").items() {
        check_rule(&rule, causes);
    }
}

fn check_rule(rule: &Field<'_>, causes: &mut Causes) {
    let subjects = rule.get("subjects");
    causes.check_given(&subjects, "subjects must contain at least one value");
    for subject in subjects.items() {
        check_subject(&subject, causes);
    }
    let (resources, urls) = (rule.get("resourceRules"), rule.get("nonResourceRules"));
    if resources.is_void() && urls.is_void() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        causes.required(rule, detail);
    }
    for rule in resources.items() {
        check_resources(&rule, causes);
    }
    for rule in urls.items() {
        check_urls(&rule, causes);
    }
}

fn check_subject(subject: &Field<'_>, causes: &mut Causes) {
    const KINDS: [(&str, &str); 3] = [
        ("Group", "group"),
        ("ServiceAccount", "serviceAccount"),
        ("User", "user"),
    ];
    let kind = subject.get("kind");
    if !KINDS.iter().any(|(name, _)| *name == kind.text()) {
        causes.unsupported(&kind, &KINDS.map(|(name, _)| name));
        // `ValidateFlowSchemaSubject`: of an unknown kind no member can be the right one.
        return;
    }
    for (name, member) in KINDS {
        let at = subject.get(member);
        match (name == kind.text(), at.is_set()) {
            (true, true) => check_identity(&at, member, causes),
            (true, false) => {
                let detail = format!("{member} is required when subject kind is '{name}'");
                causes.required(&at, &detail);
            }
            (false, true) => {
                let detail = format!("{member} is forbidden when subject kind is not '{name}'");
                causes.forbidden(&at, &detail);
            }
            (false, false) => {}
        }
    }
}

fn check_identity(identity: &Field<'_>, member: &str, causes: &mut Causes) {
    let name = identity.get("name");
    let is_account = member == "serviceAccount";
    // Only accounts are objects with a form of names; users and groups may be called anything.
    if causes.check_given(&name, "") && is_account && name.text() != "*" {
        causes.check_format(&name, formats::dns_subdomain);
    }
    if is_account {
        let namespace = identity.get("namespace");
        if causes.check_given(&namespace, "must specify namespace for service account") {
            causes.check_format(&namespace, formats::dns_label);
        }
    }
}

fn check_resources(rule: &Field<'_>, causes: &mut Causes) {
    check_verbs(rule, causes);
    for (list, one, others) in [
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ] {
        let list = rule.get(list);
        let detail = format!("resource rules must supply at least one {one}");
        causes.check_given(&list, &detail);
        check_alone(&list, others, causes);
    }
    let namespaces = rule.get("namespaces");
    if namespaces.is_void() {
        // One of the two is needed, or the rule could match nothing.
        if !rule.is_true("clusterScope") {
            let detail =
                "resource rules that are not cluster scoped must supply at least one namespace";
            causes.required(&namespaces, detail);
        }
    } else if !check_alone(&namespaces, "namespaces", causes) {
        for namespace in namespaces.items() {
            for wrong in formats::dns_label(namespace.text()) {
                let detail =
                    format!("each member of this list must be '*' or a DNS-1123 label; {wrong}");
                causes.invalid(&namespace, &detail);
            }
        }
    }
}

fn check_urls(rule: &Field<'_>, causes: &mut Causes) {
    check_verbs(rule, causes);
    let urls = rule.get("nonResourceURLs");
    causes.check_given(&urls, "nonResourceURLs must contain at least one value");
    if !check_alone(&urls, "non-resource URLs", causes) {
        for url in urls.items() {
            if let Some(wrong) = wrong_url(url.text()) {
                causes.invalid(&url, wrong);
            }
        }
    }
}

fn wrong_url(url: &str) -> Option<&'static str> {
    Some(match url {
        "" => "must not be empty",
        // The root is checked before the rules for other paths, none of which it breaks.
        "/" => return None,
        _ if !url.starts_with('/') => "must start with slash",
        _ if url.contains(' ') => "must not contain white-space",
        _ if url.contains("//") => "must not contain double slash",
        _ => {
            let stars = url.matches('*').count();
            if stars == 0 || (stars == 1 && url.ends_with("/*")) {
                return None;
            }
            "wildcard can only do suffix matching"
        }
    })
}

fn check_verbs(rule: &Field<'_>, causes: &mut Causes) {
    let verbs = rule.get("verbs");
    if causes.check_given(&verbs, "verbs must contain at least one value")
        && !check_alone(&verbs, "verbs", causes)
        && verbs.items().any(|verb| !VERBS.contains(&verb.text()))
    {
        // One cause for the list, whichever verb is unknown.
        causes.unsupported_as(&verbs, verbs.value().clone(), VERBS);
    }
}

/// Checks that a wildcard is the only item; returns whether there is one.
fn check_alone(list: &Field<'_>, what: &str, causes: &mut Causes) -> bool {
    let any = list.items().any(|each| each.text() == "*");
    if any && list.list().len() > 1 {
        let detail = format!("if '*' is present, must not specify other {what}");
        causes.invalid(list, &detail);
    }
    any
}

const NAME: Members = &[("name", "Name", Shape::Text)];
const NAMED: Shape = Shape::Struct(NAME);

/// The form of a FlowSchema's spec in messages.
const FLOW: Members = &[
    (
        "priorityLevelConfiguration",
        "PriorityLevelConfiguration",
        Shape::Whole(NAME),
    ),
    ("matchingPrecedence", "MatchingPrecedence", Shape::Number),
    (
        "distinguisherMethod",
        "DistinguisherMethod",
        Shape::Struct(METHOD),
    ),
    ("rules", "Rules", Shape::List(RULE)),
];

const METHOD: Members = &[("type", "Type", Shape::Text)];

const RULE: Members = &[
    ("subjects", "Subjects", Shape::List(SUBJECT)),
    (
        "resourceRules",
        "ResourceRules",
        Shape::List(&[
            ("verbs", "Verbs", Shape::Value),
            ("apiGroups", "APIGroups", Shape::Value),
            ("resources", "Resources", Shape::Value),
            ("clusterScope", "ClusterScope", Shape::Flag),
            ("namespaces", "Namespaces", Shape::Value),
        ]),
    ),
    (
        "nonResourceRules",
        "NonResourceRules",
        Shape::List(&[
            ("verbs", "Verbs", Shape::Value),
            ("nonResourceURLs", "NonResourceURLs", Shape::Value),
        ]),
    ),
];

const SUBJECT: Members = &[
    ("kind", "Kind", Shape::Text),
    ("user", "User", NAMED),
    ("group", "Group", NAMED),
    (
        "serviceAccount",
        "ServiceAccount",
        Shape::Struct(&[
            ("namespace", "Namespace", Shape::Text),
            ("name", "Name", Shape::Text),
        ]),
    ),
];
