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
async fn another_salt_is_drawn_when_one_has_sealed_its_number_of_values() {
    let mut keyring = Keyring::create(&keys()).await.unwrap();
    assert_eq!(keyring.in_use.lock().left, SEALS_PER_SALT);
    keyring.seals_per_salt = 100;
    keyring.in_use.lock().left = 100;
    let context = Context::new("test");
    let sealed: Vec<_> = (0..1000)
        .map(|_| keyring.seal(&context, b"the same").unwrap())
        .collect();
    let salts: Vec<_> = sealed.iter().map(|value| salt_and_nonce(value).0).collect();
    let mut runs = salts.chunks(100);
    assert!(runs.all(|run| run.iter().all(|salt| *salt == run[0])));
    assert_eq!(salts.iter().collect::<HashSet<_>>().len(), 10);
    let nonces: HashSet<_> = sealed.iter().map(|value| salt_and_nonce(value)).collect();
    assert_eq!(nonces.len(), 1000);
    // Fewer ciphers are remembered than there were salts in longer runs; all values open.
    for value in &sealed {
        assert_eq!(*keyring.open(&context, value).unwrap(), b"the same");
    }
}

#[tokio::test]
async fn concurrent_threads_never_exceed_the_number_of_a_salt() {
    let mut keyring = Keyring::create(&keys()).await.unwrap();
    keyring.seals_per_salt = 7;
    keyring.in_use.lock().left = 7;
    let context = Context::new("test");
    let seal = || {
        let values = (0..500).map(|_| keyring.seal(&context, b"").unwrap());
        values.map(|value| salt_and_nonce(&value)).collect()
    };
    let sealed: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(seal)).collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended.flat_map(|values: Vec<_>| values).collect()
    });
    assert_eq!(sealed.iter().collect::<HashSet<_>>().len(), 2000);
    let salts: HashSet<_> = sealed.iter().map(|(salt, _)| salt).collect();
    for salt in salts {
        let uses = sealed.iter().filter(|(other, _)| other == salt).count();
        assert!(uses <= 7, "{uses} values under one salt");
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
    // More than are remembered, in any order.
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
