//! After a rotation old data opens, and new data uses the new key.

use lariat_core::Gvk;
use lariat_seal::{
    Context, InvalidKeyId, KeyId, KeyWrapper, Keyring, SealError, Sealing, WrapError, WrappedKey,
    Wrapping, Zeroizing,
};
use parking_lot::Mutex;

use crate::{key, keyring};

#[tokio::test]
async fn old_data_opens_after_a_rotation_and_new_data_uses_the_new_key() {
    let context = Context::new("a");
    let first = keyring().await;
    let old = first.seal(&context, b"old").unwrap();
    let second = first.rotated().unwrap();
    let new = second.seal(&context, b"new").unwrap();
    assert_ne!(first.current_data_key(), second.current_data_key());
    assert_eq!(
        Keyring::data_key_of(&old).unwrap(),
        first.current_data_key()
    );
    assert_eq!(
        Keyring::data_key_of(&new).unwrap(),
        second.current_data_key()
    );
    assert_eq!(*second.open(&context, &old).unwrap(), b"old");
    assert!(matches!(
        first.open(&context, &new),
        Err(SealError::UnknownDataKey(_))
    ));

    let loaded = Keyring::load(second.stored(), &key(1)).await.unwrap();
    assert_eq!(*loaded.open(&context, &old).unwrap(), b"old");
    assert_eq!(*loaded.open(&context, &new).unwrap(), b"new");
    assert!(loaded.data_keys().eq(second.data_keys()));
    assert_eq!(loaded.current_data_key(), second.current_data_key());
}

#[tokio::test]
async fn a_new_wrapping_key_opens_old_data_and_the_old_one_opens_nothing_new() {
    let context = Context::new("a");
    let first = keyring().await;
    let old = first.seal(&context, b"old").unwrap();

    let both = key(2).with_old(key(1));
    let loaded = Keyring::load(first.stored(), &both).await.unwrap();
    assert!(!loaded.is_wrapped_by(&both));
    let moved = loaded.rewrapped(&both).await.unwrap();
    assert!(moved.is_wrapped_by(&both));
    assert_eq!(*moved.wrapped_by(), key(2).current());

    let alone = Keyring::load(moved.stored(), &key(2)).await.unwrap();
    assert_eq!(*alone.open(&context, &old).unwrap(), b"old");
    let refused = Keyring::load(moved.stored(), &key(1)).await;
    assert!(matches!(
        refused,
        Err(SealError::Wrap(WrapError::WrongKey { .. }))
    ));
}

/// Otherwise the old key and an old copy could open later data.
#[tokio::test]
async fn a_keyring_that_is_wrapped_again_has_a_new_key_in_its_envelope() {
    /// Shows what it is given to wrap.
    #[derive(Default)]
    struct Open(Mutex<Vec<[u8; 32]>>);
    impl KeyWrapper for Open {
        fn current(&self) -> KeyId {
            key(1).current()
        }
        fn wrap<'a>(&'a self, bytes: &'a [u8; 32]) -> Wrapping<'a, WrappedKey> {
            self.0.lock().push(*bytes);
            Box::pin(async move { key(1).wrap(bytes).await })
        }
        fn unwrap<'a>(&'a self, _: &'a WrappedKey) -> Wrapping<'a, Zeroizing<[u8; 32]>> {
            Box::pin(async { Err(InvalidKeyId.into()) })
        }
    }
    let open = Open::default();
    let first = Keyring::create(&open).await.unwrap();
    first.rewrapped(&open).await.unwrap();
    let keys = open.0.into_inner();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1]);
}

#[tokio::test]
async fn what_a_key_sealed_that_was_left_out_does_not_open() {
    let context = Context::new("a");
    let first = keyring().await;
    let old = first.seal(&context, b"old").unwrap();
    let old_key = first.current_data_key();
    assert_eq!(
        *first.without_old().unwrap().open(&context, &old).unwrap(),
        b"old"
    );
    let rotated = first.rotated().unwrap();
    assert_eq!((first.old_data_keys(), rotated.old_data_keys()), (0, 1));
    let second = rotated.without_old().unwrap();
    assert!(second.data_keys().eq([rotated.current_data_key()]));
    let opened = second.open(&context, &old);
    assert!(matches!(opened, Err(SealError::UnknownDataKey(id)) if id == old_key));
}

#[tokio::test]
async fn hashes_stay_the_same_over_restarts_and_rotations() {
    let (a, b) = (Context::new("a"), Context::new("b"));
    let first = keyring().await;
    let hash = first.keyed_hash(&a, b"value");
    assert_ne!(hash, first.keyed_hash(&b, b"value"));
    assert_ne!(hash, first.keyed_hash(&a, b"other"));
    assert_ne!(
        hash,
        keyring().await.keyed_hash(&a, b"value"),
        "of another keyring"
    );

    let second = first.rotated().unwrap().without_old().unwrap();
    let second = second.rewrapped(&key(2)).await.unwrap();
    let second = Keyring::load(second.stored(), &key(2)).await.unwrap();
    assert_eq!(hash, second.keyed_hash(&a, b"value"));
}

#[tokio::test]
async fn many_rotations_are_stored_and_loaded() {
    let context = Context::new("a");
    let mut keyring = keyring().await;
    let mut sealed = Vec::new();
    for number in 0..200_u8 {
        sealed.push(keyring.seal(&context, &[number]).unwrap());
        keyring = keyring.rotated().unwrap();
    }
    let loaded = Keyring::load(keyring.stored(), &key(1)).await.unwrap();
    for (number, value) in sealed.iter().enumerate() {
        assert_eq!(*loaded.open(&context, value).unwrap(), [number as u8]);
    }
}

#[test]
fn secrets_are_sealed_whichever_kinds_are_chosen() {
    let (secret, pod) = (Gvk::new("", "v1", "Secret"), Gvk::new("", "v1", "Pod"));
    let other = Gvk::new("demo.dev", "v1", "Secret");
    let seals = |sealing: Sealing| [&secret, &pod, &other].map(|kind| sealing.seals(kind));
    assert_eq!(seals(Sealing::of_everything(key(1))), [true, true, true]);
    assert_eq!(seals(Sealing::of_kinds([], key(1))), [true, false, false]);
    let pods = Sealing::of_kinds([pod.clone()], key(1));
    assert_eq!(seals(pods), [true, true, false]);
}

/// Otherwise the same objects would be in plain text once they are read in another version.
#[test]
fn a_kind_is_sealed_in_every_version() {
    let token = |version| Gvk::new("demo.dev", version, "Token");
    let sealing = Sealing::of_kinds([token("v1")], key(1));
    assert!(
        ["v1", "v1beta1", "v2"]
            .iter()
            .all(|version| sealing.seals(&token(version)))
    );
    assert!(!sealing.seals(&Gvk::new("other.dev", "v1", "Token")));
    assert!(!sealing.seals(&Gvk::new("demo.dev", "v1", "Ticket")));
}
