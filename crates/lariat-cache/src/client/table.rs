//! The clients of a factory, by identity.

use std::collections::HashMap;

use kube::Client;
use lariat_client::ClientIdentity;
use lariat_core::TableSize;

/// For how many identities clients are kept.
///
/// A program that impersonates users named in objects may have any number.
const MOST_IDENTITIES: usize = 256;

/// Whether a client asks the fence of the factory's gate.
pub(super) type IsFenced = bool;

/// One client per identity and fence; those used last are kept.
#[derive(Default)]
pub(super) struct ClientTable {
    /// With the number of the last use.
    clients: HashMap<(ClientIdentity, IsFenced), (u64, Client)>,
    uses: u64,
}

impl ClientTable {
    /// Returns the client of an identity, which is made if there is none, and the client that it replaces.
    pub(super) fn get_or_make(
        &mut self,
        id: (ClientIdentity, IsFenced),
        make: impl FnOnce(ClientIdentity) -> Client,
    ) -> (Client, Option<Client>) {
        self.uses += 1;
        if let Some((used, client)) = self.clients.get_mut(&id) {
            *used = self.uses;
            return (client.clone(), None);
        }
        let client = make(id.0.clone());
        let removed = self.make_room();
        self.clients.insert(id, (self.uses, client.clone()));
        (client, removed)
    }

    /// Returns the size of the table, and its bound.
    pub(super) fn size(&self) -> TableSize {
        TableSize::new("clients", self.clients.len(), MOST_IDENTITIES + 2)
    }

    /// Removes the least recently used client if there are too many.
    ///
    /// The clients without an identity are never removed.
    fn make_room(&mut self) -> Option<Client> {
        let others = self
            .clients
            .iter()
            .filter(|((identity, _), _)| !identity.is_empty());
        if others.clone().count() < MOST_IDENTITIES {
            return None;
        }
        let oldest = others
            .min_by_key(|(_, (used, _))| *used)
            .map(|(id, _)| id.clone())?;
        self.clients.remove(&oldest).map(|(_, client)| client)
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;

    use super::*;

    #[tokio::test]
    async fn clients_of_the_identities_asked_for_last_are_kept() {
        let service = tower::service_fn(|_: Request<Body>| async {
            Ok::<_, std::io::Error>(Response::new(Body::empty()))
        });
        let client = Client::new(service, "default");
        let mut table = ClientTable::default();
        let mut ask = |identity| drop(table.get_or_make((identity, true), |_| client.clone()));
        let user = |number: usize| ClientIdentity::default().impersonate(format!("user-{number}"));
        ask(ClientIdentity::default());
        for number in 0..1_000 {
            ask(user(number));
            ask(user(0));
        }
        assert_eq!(table.clients.len(), MOST_IDENTITIES + 1);
        for kept in [ClientIdentity::default(), user(0), user(999)] {
            assert!(table.clients.contains_key(&(kept, true)));
        }
        assert!(!table.clients.contains_key(&(user(1), true)));
    }
}
