//! Salts and nonces, which cannot be seen from outside in any number.

use std::collections::HashSet;

use super::*;
use crate::LocalKeys;

fn keys() -> LocalKeys {
    LocalKeys::from_bytes(Secret::random().ok().unwrap().bytes()).unwrap()
}

fn salt_and_nonce(sealed: &[u8]) -> ([u8; 12], [u8; 12]) {
    let (salt, nonce) = sealed[5..HEAD].split_at(12);
    (salt.try_into().unwrap(), nonce.try_into().unwrap())
}

#[tokio::test]
async fn each_value_has_a_salt_and_a_nonce_of_its_own() {
    let keyring = Keyring::create(&keys()).await.unwrap();
    let context = Context::new("test");
    let sealed: Vec<_> = (0..1000)
        .map(|_| keyring.seal(&context, b"the same").unwrap())
        .collect();
    let drawn = sealed.iter().map(|value| salt_and_nonce(value));
    let (salts, nonces): (HashSet<_>, HashSet<_>) = drawn.unzip();
    assert_eq!((salts.len(), nonces.len()), (1000, 1000));
    for value in &sealed {
        assert_eq!(*keyring.open(&context, value).unwrap(), b"the same");
    }
}

#[tokio::test]
async fn loading_the_same_stored_keyring_twice_never_seals_under_the_same_salt() {
    let keys = keys();
    let first = Keyring::create(&keys).await.unwrap();
    let context = Context::new("test");
    let mut salts = HashSet::new();
    // As after a restore of the file: every run begins with the same bytes.
    for _ in 0..100 {
        let keyring = Keyring::load(first.stored(), &keys).await.unwrap();
        let sealed = keyring.seal(&context, b"").unwrap();
        assert!(salts.insert(salt_and_nonce(&sealed).0));
        assert!(first.open(&context, &sealed).is_ok());
    }
    assert_eq!(salts.len(), 100);
}

#[tokio::test]
async fn keyrings_made_of_one_another_do_not_share_a_salt() {
    let keys = keys();
    let first = Keyring::create(&keys).await.unwrap();
    let context = Context::new("test");
    let others = [
        first.rewrapped(&keys).await.unwrap(),
        first.without_old().unwrap(),
        first.rotated().unwrap(),
    ];
    let salts = others.iter().chain([&first]).map(|keyring| {
        let sealed = keyring.seal(&context, b"").unwrap();
        salt_and_nonce(&sealed).0
    });
    assert_eq!(salts.collect::<HashSet<_>>().len(), 4);
}
