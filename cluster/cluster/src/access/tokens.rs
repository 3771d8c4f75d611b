//! Bearer tokens: configured ones, and those issued for service accounts.
//!
//! Source: `jwtTokenAuthenticator` in `k8s.io/kubernetes/pkg/serviceaccount/jwt.go`.

use std::collections::HashMap;
use std::sync::Arc;
use std::{fmt, io};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use lariat_apimachinery::go_text;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use super::claims::{Claims, Issue};
use super::signer::Signer;
use super::user::User;
use super::validity;
use crate::clock::Clock;
use crate::random::Random;
use crate::store::Store;

/// The issuer of tokens, and their default audience: this server.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc.cluster.local";

/// The number of verified tokens that are cached.
const REMEMBERED: usize = 4096;
/// For how many seconds an expired token is remembered, so that a review can report that it has expired.
const FORGOTTEN_AFTER: i64 = 3600;

/// The tokens a cluster knows.
pub(crate) struct Tokens {
    fixed: HashMap<String, User>,
    /// Those that were issued, or whose signature was checked; the check takes longer than most requests.
    known: Mutex<HashMap<String, Arc<Claims>>>,
    signer: Signer,
}

/// The content of a valid token.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) user: User,
    /// Whom it is for, of those that were asked about.
    pub(crate) audiences: Vec<String>,
}

/// The error of an invalid token, which contains only claims of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// No server made it, or another one.
    Unknown,
    /// It is for other audiences.
    Audience(String),
    /// Its object no longer exists, or it has expired, or it is not signed.
    Invalid(String),
}

/// The header of a token.
#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    alg: String,
    #[serde(default)]
    kid: String,
}

/// The member of claims by which it is decided whether they concern this server.
#[derive(Deserialize)]
struct Issuer {
    iss: String,
}

impl Tokens {
    pub(crate) fn new(fixed: HashMap<String, User>, signer: Signer) -> Self {
        Self {
            fixed,
            known: Mutex::default(),
            signer,
        }
    }

    /// Returns whether a program configured any tokens.
    pub(crate) fn has_fixed(&self) -> bool {
        !self.fixed.is_empty()
    }

    /// Returns the key that signs tokens.
    pub(crate) fn signer(&self) -> &Signer {
        &self.signer
    }

    /// Returns the claims of a token that is for one of some audiences.
    ///
    /// # Errors
    ///
    /// It is not known or no longer good.
    pub(crate) fn look_up(
        &self,
        store: &Store,
        clock: &Clock,
        token: &str,
        wanted: &[&str],
    ) -> Result<Token, TokenError> {
        if let Some(user) = self.fixed.get(token) {
            let audiences = both(&[AUDIENCE.to_owned()], wanted);
            // As WrapAudienceAgnosticToken, which leaves it to other authenticators.
            if audiences.is_empty() {
                return Err(TokenError::Unknown);
            }
            let user = user.clone().authenticated();
            return Ok(Token { user, audiences });
        }
        let claims = self.claims(token)?;
        let audiences = both(&claims.audiences, wanted);
        if audiences.is_empty() {
            return Err(TokenError::Audience(format!(
                "token audiences {} is invalid for the target audiences {}",
                listed(claims.audiences.iter().map(String::as_str)),
                listed(wanted.iter().copied()),
            )));
        }
        let user = validity::user(store, clock.timestamp(), &claims);
        let user = user.map_err(TokenError::Invalid)?;
        Ok(Token { user, audiences })
    }

    fn claims(&self, token: &str) -> Result<Arc<Claims>, TokenError> {
        if let Some(claims) = self.known.lock().get(token) {
            return Ok(Arc::clone(claims));
        }
        let claims = Arc::new(self.verify(token)?);
        self.remember(token, &claims);
        Ok(claims)
    }

    /// Returns the claims of a token that this server has signed.
    fn verify(&self, token: &str) -> Result<Claims, TokenError> {
        let (text, signature) = token.rsplit_once('.').ok_or(TokenError::Unknown)?;
        let (header, payload) = text.split_once('.').ok_or(TokenError::Unknown)?;
        let payload = decode(payload)?;
        let issuer: Issuer = read(&payload)?;
        if issuer.iss != AUDIENCE {
            return Err(TokenError::Unknown);
        }
        let header: Header = read(&decode(header)?)?;
        let signature = decode(signature)?;
        let invalid = |reason: &str| Err(TokenError::Invalid(reason.to_owned()));
        if !header.kid.is_empty() && header.kid != self.signer.id() {
            return invalid("invalid signature, no keys found");
        }
        let is_signed =
            header.alg == self.signer.algorithm() && self.signer.has_signed(text, &signature);
        if !is_signed {
            return invalid("go-jose/go-jose: error in cryptographic primitive");
        }
        read(&payload)
    }

    /// Issues a token, a JSON Web Token.
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
        let claims = Claims::new(issue, random.uid(), now);
        let header = json!({"alg": self.signer.algorithm(), "kid": self.signer.id()});
        let payload = serde_json::to_string(&claims)?;
        let mut token = format!(
            "{}.{}",
            BASE64.encode(header.to_string()),
            BASE64.encode(payload)
        );
        let signature = self.signer.sign(random, &token)?;
        token.push('.');
        token.push_str(&signature);
        // Expired tokens go when a new one is issued, which spares a timer.
        let past = now.as_second().saturating_sub(FORGOTTEN_AFTER);
        self.known.lock().retain(|_, each| each.expires > past);
        self.remember(&token, &Arc::new(claims));
        Ok(token)
    }

    fn remember(&self, token: &str, claims: &Arc<Claims>) {
        let mut known = self.known.lock();
        if self.signer.verifies() && known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(token.to_owned(), Arc::clone(claims));
    }
}

impl TokenError {
    /// Returns the error in the status of a TokenReview.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Unknown => "invalid bearer token".to_owned(),
            // Two authenticators of a genuine server refuse it, and Go joins their errors.
            Self::Audience(reason) | Self::Invalid(reason) => {
                format!("[invalid bearer token, {reason}]")
            }
        }
    }
}

/// Returns those of the wanted audiences that a token has, in the order in which they are wanted.
fn both(audiences: &[String], wanted: &[&str]) -> Vec<String> {
    let is_there = |each: &&&str| audiences.iter().any(|audience| audience == **each);
    let both = wanted.iter().filter(is_there);
    both.map(|&each| each.to_owned()).collect()
}

/// Writes a list as Go does.
fn listed<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.map(go_text::quoted).collect();
    format!("[{}]", texts.join(" "))
}

fn decode(part: &str) -> Result<Vec<u8>, TokenError> {
    BASE64.decode(part).map_err(|_| TokenError::Unknown)
}

fn read<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, TokenError> {
    serde_json::from_slice(json).map_err(|_| TokenError::Unknown)
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A token is a credential: it must not get into any log.
        f.debug_struct("Tokens")
            .field("fixed", &self.fixed.len())
            .field("known", &self.known.lock().len())
            .finish()
    }
}
