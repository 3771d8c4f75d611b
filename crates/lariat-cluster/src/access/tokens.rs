//! Bearer tokens: configured ones, and those issued for service accounts.

use std::collections::HashMap;
use std::{fmt, io};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use jiff::Timestamp;
use lariat_core::ObjectKey;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::user::User;
use crate::clock::Clock;
use crate::random::Random;
use crate::store::Store;

/// Whom tokens are for unless they say otherwise: this server.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc.cluster.local";

/// The tokens a cluster knows.
#[derive(Default)]
pub(crate) struct Tokens {
    fixed: HashMap<String, User>,
    issued: Mutex<HashMap<String, Account>>,
}

/// The account a token was issued for.
#[derive(Debug, Clone)]
struct Account {
    namespace: String,
    name: String,
    uid: String,
    audiences: Vec<String>,
    id: String,
    expires_at: Timestamp,
}

/// What a token is issued for.
#[derive(Debug)]
pub(crate) struct Issue<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) audiences: Vec<String>,
    pub(crate) seconds: u64,
}

/// What a known token says.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) user: User,
    pub(crate) audiences: Vec<String>,
}

impl Tokens {
    pub(crate) fn new(fixed: HashMap<String, User>) -> Self {
        Self {
            fixed,
            issued: Mutex::default(),
        }
    }

    /// Returns whether a program configured any tokens.
    pub(crate) fn has_fixed(&self) -> bool {
        !self.fixed.is_empty()
    }

    /// Returns what a token says, if it is known and still good.
    pub(crate) fn look_up(&self, store: &Store, clock: &Clock, token: &str) -> Option<Token> {
        if let Some(user) = self.fixed.get(token) {
            return Some(Token {
                user: user.clone().authenticated(),
                audiences: vec![AUDIENCE.to_owned()],
            });
        }
        let account = self.issued.lock().get(token).cloned()?;
        if clock.timestamp() >= account.expires_at {
            return None;
        }
        // With its account a token goes too, even if there is another of that name.
        let key = ObjectKey::namespaced(&account.namespace, &account.name);
        let stored = store.get(store.table("serviceaccounts"), &key)?;
        if stored.uid() != account.uid {
            return None;
        }
        let id = format!("JTI={}", account.id);
        let user = User::service_account(&account.namespace, &account.name)
            .uid(account.uid)
            .authenticated()
            .extra("authentication.kubernetes.io/credential-id", id);
        Some(Token {
            user,
            audiences: account.audiences,
        })
    }

    /// Issues a token in the form of a JSON Web Token.
    ///
    /// Its signature is a random number. The server knows its tokens, so nothing but itself has to be able to check
    /// them.
    ///
    /// # Errors
    ///
    /// The operating system has no random numbers.
    pub(crate) fn issue(
        &self,
        clock: &Clock,
        random: &Random,
        issue: Issue<'_>,
    ) -> io::Result<String> {
        let now = clock.timestamp();
        let expires_at = now
            .checked_add(std::time::Duration::from_secs(issue.seconds))
            .unwrap_or(Timestamp::MAX);
        let account = Account {
            namespace: issue.namespace.to_owned(),
            name: issue.name.to_owned(),
            uid: issue.uid.to_owned(),
            audiences: issue.audiences,
            id: random.uid(),
            expires_at,
        };
        // Clients read the claims but cannot check the signature, so any secret will do as one.
        let header = json!({"alg": "RS256", "kid": "lariat"});
        let token = format!(
            "{}.{}.{}",
            encode(&header),
            encode(&claims(&account, now)),
            random.secret()?
        );
        let mut issued = self.issued.lock();
        // Expired tokens go when a new one is issued, which spares a timer.
        issued.retain(|_, account| account.expires_at > now);
        issued.insert(token.clone(), account);
        Ok(token)
    }
}

fn claims(account: &Account, now: Timestamp) -> Value {
    json!({
        "aud": account.audiences, "exp": account.expires_at.as_second(), "iat": now.as_second(),
        "iss": AUDIENCE, "jti": account.id, "nbf": now.as_second(),
        "kubernetes.io": {
            "namespace": account.namespace,
            "serviceaccount": {"name": account.name, "uid": account.uid},
        },
        "sub": format!("system:serviceaccount:{}:{}", account.namespace, account.name),
    })
}

fn encode(part: &Value) -> String {
    BASE64.encode(part.to_string())
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A token is a credential: it must not get into any log.
        f.debug_struct("Tokens")
            .field("fixed", &self.fixed.len())
            .field("issued", &self.issued.lock().len())
            .finish()
    }
}
