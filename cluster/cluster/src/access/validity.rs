//! Whether a token is still valid: not expired, and its bound objects exist.
//!
//! Source: `validator.Validate` in `k8s.io/kubernetes/pkg/serviceaccount/claims.go`.

use jiff::Timestamp;
use lariat_apimachinery::object::metadata_text;
use lariat_core::ObjectKey;

use super::claims::{Claims, Reference};
use super::user::User;
use crate::store::{Store, Stored};

/// By how much clocks may differ, and how long deleted objects may still count, in seconds.
const LEEWAY: i64 = 60;

const INVALIDATED: &str = "service account token has been invalidated";

/// Returns whose a token is.
///
/// # Errors
///
/// It is no longer good, or not yet; the text is that of Go.
pub(super) fn user(store: &Store, now: Timestamp, claims: &Claims) -> Result<User, String> {
    check_times(claims, now)?;
    let (namespace, account) = (&claims.kubernetes.namespace, &claims.kubernetes.account);
    let key = ObjectKey::namespaced(namespace, &account.name);
    let found = store.get(store.table("serviceaccounts"), &key);
    let found = found.ok_or_else(|| format!("serviceaccounts {:?} not found", account.name))?;
    if found.uid() != account.uid {
        return Err(format!(
            "service account UID ({}) does not match claim ({})",
            found.uid(),
            account.uid
        ));
    }
    if was_deleted(&found, now) {
        return Err(format!(
            "service account {namespace}/{} has been deleted",
            account.name
        ));
    }
    let check = |kind: &str, table: &str, namespace: Option<&str>, bound: &Reference| {
        let key = match namespace {
            Some(namespace) => ObjectKey::namespaced(namespace, &bound.name),
            None => ObjectKey::cluster(&bound.name),
        };
        let found = store.get(store.table(table), &key).ok_or(INVALIDATED)?;
        if found.uid() != bound.uid {
            return Err(format!(
                "{kind} UID ({}) does not match service account {kind} ref claim ({})",
                found.uid(),
                bound.uid
            ));
        }
        if was_deleted(&found, now) {
            return Err(INVALIDATED.to_owned());
        }
        Ok(())
    };
    let bound = &claims.kubernetes.bound;
    if let Some(secret) = &bound.secret {
        check("secret", "secrets", Some(namespace), secret)?;
    }
    if let Some(pod) = &bound.pod {
        check("pod", "pods", Some(namespace), pod)?;
    }
    // The node of a Pod is a claim alone.
    if let Some(node) = bound.node.as_ref().filter(|_| bound.pod.is_none()) {
        check("node", "nodes", None, node)?;
    }
    Ok(named(claims))
}

fn check_times(claims: &Claims, now: Timestamp) -> Result<(), &'static str> {
    let is_before = |seconds: i64| Timestamp::from_second(seconds).is_ok_and(|time| now < time);
    let is_after = |seconds: i64| Timestamp::from_second(seconds).is_ok_and(|time| now > time);
    if is_before(claims.not_before.saturating_sub(LEEWAY)) {
        Err("service account token is not valid yet")
    } else if is_after(claims.expires.saturating_add(LEEWAY)) {
        Err("service account token has expired")
    } else if is_before(claims.issued.saturating_sub(LEEWAY)) {
        Err("service account token is issued in the future")
    } else {
        Ok(())
    }
}

/// Returns whether an object that is still there was deleted a while ago.
fn was_deleted(stored: &Stored, now: Timestamp) -> bool {
    if !stored.is_deleting() {
        return false;
    }
    let object = stored.object();
    let time = metadata_text(&object, "deletionTimestamp").parse::<Timestamp>();
    time.is_ok_and(|time| time.as_second().saturating_add(LEEWAY) < now.as_second())
}

/// Makes the user of an account, with the token and its bound objects in the user's extra.
fn named(claims: &Claims) -> User {
    let kubernetes = &claims.kubernetes;
    let user = User::service_account(&kubernetes.namespace, &kubernetes.account.name)
        .uid(kubernetes.account.uid.clone())
        .authenticated();
    let extra = |user: User, name: &str, value: &str| {
        if value.is_empty() {
            return user;
        }
        user.extra(
            &format!("authentication.kubernetes.io/{name}"),
            value.to_owned(),
        )
    };
    let mut user = extra(user, "credential-id", &format!("JTI={}", claims.id));
    let bound = &kubernetes.bound;
    for (kind, reference) in [("node", &bound.node), ("pod", &bound.pod)] {
        if let Some(reference) = reference {
            user = extra(user, &format!("{kind}-name"), &reference.name);
            user = extra(user, &format!("{kind}-uid"), &reference.uid);
        }
    }
    user
}
