//! What was changed, cut off, moved or sealed with another key does not open.

use lariat_seal::{Context, KeyWrapper, Keyring, SealError, WrapError, WrappedKey};
use proptest::prelude::*;

use crate::{key, key_bytes, keyring};

#[tokio::test]
async fn a_value_opens_as_it_was_sealed() {
    let keyring = keyring().await;
    let context = Context::new("a");
    for length in [0, 1, 15, 16, 17, 4096, 100_000] {
        let value: Vec<u8> = (0..length).map(|at| at as u8).collect();
        let sealed = keyring.seal(&context, &value).unwrap();
        assert_eq!(sealed.len(), length + 45);
        assert_eq!(*keyring.open(&context, &sealed).unwrap(), value);
    }
}

#[tokio::test]
async fn every_flipped_bit_and_every_cut_is_noticed() {
    let keyring = keyring().await;
    let context = Context::new("a");
    let sealed = keyring.seal(&context, b"some value").unwrap();
    for bit in 0..sealed.len() * 8 {
        let mut flipped = sealed.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(keyring.open(&context, &flipped).is_err(), "bit {bit}");
    }
    for cut in 0..sealed.len() {
        let opened = keyring.open(&context, &sealed[..cut]);
        assert!(opened.is_err(), "cut at {cut}");
    }
    let mut longer = sealed.clone();
    longer.push(0);
    assert!(keyring.open(&context, &longer).is_err());
}

#[tokio::test]
async fn a_value_does_not_open_in_another_place() {
    let keyring = keyring().await;
    let row = Context::new("v1/Secret").and("default/a");
    let sealed = keyring.seal(&row.and("json"), b"x").unwrap();
    let others = [
        row,
        row.and("status"),
        Context::new("v1/Secret").and("default/b").and("json"),
        Context::new("v1/Secretdefault/a").and("json"),
        Context::new("v1/Secret").and("default/ajson"),
        row.and("json").and(""),
    ];
    for other in others {
        let opened = keyring.open(&other, &sealed);
        assert!(matches!(opened, Err(SealError::Rejected)), "{opened:?}");
    }
}

#[tokio::test]
async fn another_keyring_says_which_data_key_it_lacks() {
    let (one, other) = (keyring().await, keyring().await);
    let context = Context::new("a");
    let sealed = one.seal(&context, b"x").unwrap();
    assert_eq!(
        Keyring::data_key_of(&sealed).unwrap(),
        one.current_data_key()
    );
    let opened = other.open(&context, &sealed);
    assert!(matches!(opened, Err(SealError::UnknownDataKey(id)) if id == one.current_data_key()));
}

#[tokio::test]
async fn a_stored_keyring_with_any_bit_flipped_or_cut_anywhere_is_refused() {
    let keyring = keyring().await.rotated().unwrap();
    let stored = keyring.stored();
    for bit in 0..stored.len() * 8 {
        let mut flipped = stored.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(Keyring::load(&flipped, &key(1)).await.is_err(), "bit {bit}");
    }
    for cut in 0..stored.len() {
        let loaded = Keyring::load(&stored[..cut], &key(1)).await;
        assert!(loaded.is_err(), "cut at {cut}");
    }
    let longer = [stored, &[0; 32]].concat();
    assert!(Keyring::load(&longer, &key(1)).await.is_err());
}

#[tokio::test]
async fn a_key_of_a_service_that_says_something_else_is_refused() {
    /// Answers with another key than it was given, as a service that mixes up requests.
    struct Mixed;
    impl KeyWrapper for Mixed {
        fn current(&self) -> lariat_seal::KeyId {
            key(1).current()
        }
        fn wrap<'a>(&'a self, bytes: &'a [u8; 32]) -> lariat_seal::Wrapping<'a, WrappedKey> {
            Box::pin(async move { key(1).wrap(bytes).await })
        }
        fn unwrap<'a>(
            &'a self,
            _: &'a WrappedKey,
        ) -> lariat_seal::Wrapping<'a, lariat_seal::Zeroizing<[u8; 32]>> {
            Box::pin(async { Ok(lariat_seal::Zeroizing::new(key_bytes(9))) })
        }
    }
    let keyring = keyring().await;
    let loaded = Keyring::load(keyring.stored(), &Mixed).await;
    assert!(matches!(loaded, Err(SealError::Keyring(_))), "{loaded:?}");
}

#[tokio::test]
async fn a_wrapped_key_that_was_changed_is_refused_with_the_name_of_its_key() {
    let keys = key(1);
    let wrapped = keys.wrap(&key_bytes(2)).await.unwrap();
    assert_eq!(*keys.unwrap(&wrapped).await.unwrap(), key_bytes(2));
    for at in 0..wrapped.bytes().len() {
        let mut bytes = wrapped.bytes().to_vec();
        bytes[at] ^= 1;
        let changed = WrappedKey::new(keys.current(), bytes).unwrap();
        let refused = keys.unwrap(&changed).await;
        assert!(matches!(refused, Err(WrapError::Rejected(id)) if id == keys.current()));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused_and_nothing_panics(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        head in 0_usize..40,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let keyring = keyring().await;
            let context = Context::new("a");
            let real = keyring.seal(&context, b"x").unwrap();
            let mixed = [&real[..head], &bytes[..]].concat();
            prop_assert!(keyring.open(&context, &bytes).is_err());
            prop_assert!(keyring.open(&context, &mixed).is_err());
            let mixed = [&keyring.stored()[..head], &bytes[..]].concat();
            prop_assert!(Keyring::load(&bytes, &key(1)).await.is_err());
            prop_assert!(Keyring::load(&mixed, &key(1)).await.is_err());
            Ok(())
        })?;
    }

    #[test]
    fn contexts_of_different_parts_differ(
        one in proptest::collection::vec("[ab]{0,3}", 1..4),
        other in proptest::collection::vec("[ab]{0,3}", 1..4),
    ) {
        let context = |parts: &[String]| {
            parts[1..].iter().fold(Context::new(&parts[0]), |all, part| all.and(part))
        };
        prop_assert_eq!(context(&one) == context(&other), one == other);
    }
}
