//! Kubeconfigs that others may write: they must refer to nothing outside of their text.

use serde_json::Value;

use super::entry::Entry;
use super::merged::{Kubeconfig, List};

/// The members of users and clusters that refer to something outside, and what that is.
const OUTSIDE: [(List, &str, &str); 6] = [
    (List::Users, "exec", "a command to run"),
    (List::Users, "auth-provider", "an auth provider"),
    (List::Users, "tokenFile", "a file with a token"),
    (
        List::Users,
        "client-certificate",
        "a file with a certificate",
    ),
    (List::Users, "client-key", "a file with a key"),
    (List::Clusters, "certificate-authority", "a file with a CA"),
];

impl Kubeconfig {
    /// Returns the kubeconfig, if none of its entries refers to something outside of it.
    ///
    /// This is asked of entries that are not used, too, because the current context may be changed later.
    pub(crate) fn self_contained(self) -> Result<Self, String> {
        for (list, member, what) in OUTSIDE {
            for entry in self.all(list)? {
                if is_set(&entry, member) {
                    let problem =
                        format!("has {what}, which a self-contained kubeconfig must not have");
                    return Err(entry.wrong(problem));
                }
            }
        }
        Ok(self)
    }
}

/// Returns whether an entry has a member; an empty one counts as missing.
fn is_set(entry: &Entry<'_>, member: &str) -> bool {
    entry
        .get(member)
        .is_some_and(|value| *value != Value::String(String::new()))
}
