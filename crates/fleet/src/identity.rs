//! Which cluster a member reaches, and that no other member reaches it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, Error};
use parking_lot::Mutex;

/// The namespace whose uid identifies a cluster.
const NAMESPACE: &str = "kube-system";

/// Sends one request to a cluster, and returns its identity.
///
/// `None` if the credentials are accepted, but may not read it.
pub(crate) async fn identify(client: &Client) -> Result<Option<String>, Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.get_metadata(NAMESPACE).await {
        Ok(found) => Ok(found.metadata.uid),
        Err(Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The clusters that have a member, by identity.
#[derive(Debug, Default)]
pub(crate) struct Identities(Mutex<BTreeMap<String, Holder>>);

/// The member that has a cluster, and how many claims it has.
///
/// There are two while a member changes its credentials.
#[derive(Debug)]
struct Holder {
    member: Arc<str>,
    claims: usize,
}

/// A member's claim to a cluster, until it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    identities: Arc<Identities>,
    cluster: String,
}

/// Another member has the cluster.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Twin {
    member: Arc<str>,
    cluster: String,
}

impl Identities {
    /// Claims a cluster for a member, unless another one has it.
    pub(crate) fn claim(
        self: &Arc<Self>,
        cluster: String,
        member: &Arc<str>,
    ) -> Result<Claim, Twin> {
        match self.0.lock().entry(cluster.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(Holder {
                    member: Arc::clone(member),
                    claims: 1,
                });
            }
            Entry::Occupied(mut entry) => {
                let holder = entry.get_mut();
                if holder.member != *member {
                    let member = Arc::clone(&holder.member);
                    return Err(Twin { member, cluster });
                }
                holder.claims += 1;
            }
        }
        Ok(Claim {
            identities: Arc::clone(self),
            cluster,
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut holders = self.identities.0.lock();
        let Entry::Occupied(mut entry) = holders.entry(self.cluster.clone()) else {
            return;
        };
        entry.get_mut().claims -= 1;
        if entry.get().claims == 0 {
            entry.remove();
        }
    }
}

impl fmt::Display for Twin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { member, cluster } = self;
        write!(
            f,
            "it is the cluster of the member {member:?} (uid {cluster} of the namespace {NAMESPACE}): remove one of \
             the two"
        )
    }
}

impl std::error::Error for Twin {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_is_claimed_by_one_member_until_all_claims_are_dropped() {
        let identities = Arc::<Identities>::default();
        let (eu, us): (Arc<str>, Arc<str>) = ("eu".into(), "us".into());
        let claim = |member| identities.claim("1".to_owned(), member);
        let first = claim(&eu).unwrap();
        let second = claim(&eu).unwrap();
        let text = claim(&us).unwrap_err().to_string();
        assert!(
            text.starts_with("it is the cluster of the member \"eu\" (uid 1"),
            "{text}"
        );
        drop(first);
        assert!(claim(&us).is_err());
        drop(second);
        assert!(claim(&us).is_ok());
    }
}
