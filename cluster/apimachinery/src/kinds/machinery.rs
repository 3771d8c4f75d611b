//! The built-in kinds the cluster itself works with, a row each.

use super::row::{Row, cluster, ns};
use crate::names::NameRule;

const EVENT_FIELDS: [&str; 10] = [
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "type",
    "reportingController",
];

pub(super) fn rows() -> Vec<Row> {
    [machinery(), admission(), devices(), reviews()].concat()
}

fn machinery() -> Vec<Row> {
    vec![
        ns("coordination.k8s.io/v1", "Lease", "leases")
            .put_creates()
            .version_required(),
        // The table is that of core Events; see the registry.
        ns("events.k8s.io/v1", "Event", "events")
            .short(&["ev"])
            .put_creates()
            .fields(&EVENT_FIELDS),
        cluster(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        )
        .short(&["crd", "crds"])
        .extends()
        .generation()
        .status()
        .version_required()
        .answers_object(),
        cluster("apiregistration.k8s.io/v1", "APIService", "apiservices")
            .extends()
            .names(NameRule::PathSegment)
            .status()
            .version_required(),
        cluster(
            "flowcontrol.apiserver.k8s.io/v1",
            "FlowSchema",
            "flowschemas",
        )
        .generation()
        .status(),
        cluster(
            "flowcontrol.apiserver.k8s.io/v1",
            "PriorityLevelConfiguration",
            "prioritylevelconfigurations",
        )
        .generation()
        .status(),
    ]
}

fn admission() -> Vec<Row> {
    let admission = "admissionregistration.k8s.io/v1";
    vec![
        cluster(
            admission,
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
        )
        .extends()
        .generation_as_sent()
        .version_required(),
        cluster(
            admission,
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
        )
        .extends()
        .generation_as_sent()
        .version_required(),
        cluster(
            admission,
            "MutatingAdmissionPolicy",
            "mutatingadmissionpolicies",
        )
        .extends()
        .generation()
        .version_required(),
        cluster(
            admission,
            "MutatingAdmissionPolicyBinding",
            "mutatingadmissionpolicybindings",
        )
        .extends()
        .generation()
        .version_required(),
        cluster(
            admission,
            "ValidatingAdmissionPolicy",
            "validatingadmissionpolicies",
        )
        .extends()
        .generation()
        .status()
        .version_required(),
        cluster(
            admission,
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
        )
        .extends()
        .generation()
        .version_required(),
    ]
}

fn devices() -> Vec<Row> {
    let resource = "resource.k8s.io/v1";
    vec![
        ns(resource, "ResourceClaim", "resourceclaims")
            .status()
            .answers_object(),
        ns(resource, "ResourceClaimTemplate", "resourceclaimtemplates").answers_object(),
        cluster(resource, "DeviceClass", "deviceclasses")
            .generation()
            .answers_object(),
        cluster(resource, "ResourceSlice", "resourceslices")
            .generation()
            .answers_object()
            .fields(&["spec.nodeName", "spec.driver"]),
    ]
}

/// Kinds whose objects are requests, which are answered and not stored.
fn reviews() -> Vec<Row> {
    let (authentication, authorization) = ("authentication.k8s.io/v1", "authorization.k8s.io/v1");
    let rows = vec![
        ns("v1", "Binding", "bindings"),
        cluster(authentication, "SelfSubjectReview", "selfsubjectreviews"),
        cluster(authentication, "TokenReview", "tokenreviews"),
        ns(
            authorization,
            "LocalSubjectAccessReview",
            "localsubjectaccessreviews",
        ),
        cluster(
            authorization,
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
        ),
        cluster(
            authorization,
            "SelfSubjectRulesReview",
            "selfsubjectrulesreviews",
        ),
        cluster(authorization, "SubjectAccessReview", "subjectaccessreviews"),
    ];
    rows.into_iter().map(Row::review).collect()
}
