//! Tokens of builds without the feature `signatures`: a random number stands for the signature.

use std::io;

use crate::random::Random;

/// Makes random signatures, so that a token is valid only while this process remembers it.
#[derive(Debug)]
pub(crate) struct Signer;

impl Signer {
    #[expect(clippy::unnecessary_wraps, reason = "with signatures it may fail")]
    pub(crate) fn generate() -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    #[expect(clippy::unnecessary_wraps, reason = "with signatures it may fail")]
    pub(crate) fn new(_: &[u8]) -> io::Result<Self> {
        Ok(Self)
    }

    #[expect(clippy::unnecessary_wraps, reason = "with signatures it may fail")]
    pub(crate) fn repeatable(_: &str) -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn algorithm(&self) -> &'static str {
        "RS256"
    }

    pub(crate) fn id(&self) -> &str {
        "lariat"
    }

    pub(crate) fn verifies(&self) -> bool {
        false
    }

    pub(crate) fn sign(&self, random: &Random, _: &str) -> io::Result<String> {
        random.secret()
    }

    pub(crate) fn has_signed(&self, _: &str, _: &[u8]) -> bool {
        false
    }

    pub(crate) fn key_set(&self) -> Option<String> {
        None
    }
}
