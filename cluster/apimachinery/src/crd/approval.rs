//! The approval that CRDs in groups of Kubernetes need, in an annotation.
//!
//! Source: `GetAPIApprovalState` and `apiapproval` in `k8s.io/apiextensions-apiserver/pkg`.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use super::parts::text;
use crate::cause::StatusCause;
use crate::go_text;
use crate::object::Object;

const APPROVAL: &str = "api-approved.kubernetes.io";
const HELP: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
const RULE: &str = "protected groups must have approval annotation";

/// Checks that groups of Kubernetes itself are used only with an approval.
pub(super) fn check(object: &Object, old: Option<&Object>) -> Option<StatusCause> {
    if !is_protected(object) {
        return None;
    }
    let approval = Approval::of(object);
    // An approval that stays as good or bad as it was is no reason to refuse a change.
    if old.is_some_and(|old| Approval::of(old) == approval) {
        return None;
    }
    let field = format!("metadata.annotations[{APPROVAL}]");
    match approval {
        Approval::Given | Approval::Bypassed => None,
        Approval::Missing => Some(StatusCause::required(&field, &approval.message(object))),
        Approval::Invalid => {
            let value = annotation(object).into();
            Some(StatusCause::invalid(
                &field,
                &value,
                &approval.message(object),
            ))
        }
    }
}

/// Returns the condition of a CRD's approval, if its group needs one.
///
/// Its type is `KubernetesAPIApprovalPolicyConformant`.
///
/// ```
/// use lariat_apimachinery::crd::approval_condition;
/// use serde_json::json;
///
/// let crd = json!({
///     "metadata": {"annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
///     "spec": {"group": "demo.k8s.io"},
/// });
/// let condition = approval_condition(crd.as_object().expect("it is an object"));
/// assert_eq!(condition.expect("the group is protected")["reason"], "UnapprovedAnnotation");
/// ```
#[must_use]
pub fn approval_condition(object: &Object) -> Option<Value> {
    if !is_protected(object) {
        return None;
    }
    let approval = Approval::of(object);
    let (status, reason) = match approval {
        Approval::Given => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
    };
    Some(json!({
        "type": "KubernetesAPIApprovalPolicyConformant", "status": status, "reason": reason,
        "message": approval.message(object),
    }))
}

fn is_protected(object: &Object) -> bool {
    let group = object.get("spec").map_or("", |spec| text(spec, "group"));
    let ends = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
    ends("k8s.io") || ends("kubernetes.io")
}

fn annotation(object: &Object) -> &str {
    let annotations = object
        .get("metadata")
        .map(|metadata| &metadata["annotations"]);
    annotations.map_or("", |annotations| text(annotations, APPROVAL))
}

/// A URL with a scheme and a host, as `url.ParseRequestURI` reads it.
static LINK: LazyLock<Regex> = LazyLock::new(|| {
    let form = r#"^[a-zA-Z][a-zA-Z0-9+.-]*://([^/?@[:cntrl:]]*@)?[^/?@:#%\\^`{|} [:cntrl:]]+(:[0-9]*)?([/?][^[:cntrl:]]*)?$"#;
    Regex::new(form).expect("it is a constant, and tested")
});

/// The approval of a CRD, by its annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Approval {
    Missing,
    Bypassed,
    Given,
    Invalid,
}

impl Approval {
    // `GetAPIApprovalState`.
    fn of(object: &Object) -> Self {
        match annotation(object) {
            "" => Self::Missing,
            text if text.starts_with("unapproved") => Self::Bypassed,
            text if LINK.is_match(text) => Self::Given,
            _ => Self::Invalid,
        }
    }

    fn message(self, object: &Object) -> String {
        match self {
            Self::Missing => format!("{RULE} {APPROVAL:?}, {HELP}"),
            Self::Bypassed => format!("not approved: {}", go_text::quoted(annotation(object))),
            Self::Given => format!("approved in {}", annotation(object)),
            Self::Invalid => format!(
                "{RULE} {APPROVAL:?} with either a URL or a reason starting with \"unapproved\", {HELP}"
            ),
        }
    }
}
