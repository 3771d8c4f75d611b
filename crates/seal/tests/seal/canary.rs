//! Neither what is sealed nor a key is found in what is stored, shown or logged.

use std::io::Write;

use lariat_seal::{Context, KeyWrapper, Keyring, LocalKeys, SealError, Sealing, WrapError};

use crate::{contains, key, key_bytes, keyring};

const CANARY: &[u8] = b"canary-5f2c9b7e-do-not-show";

#[tokio::test]
async fn a_canary_is_in_no_sealed_byte() {
    let keyring = keyring().await;
    let context = Context::new(CANARY);
    let value = keyring.seal(&context, CANARY).unwrap();
    let mut stream = keyring.seal_stream(&context, Vec::new()).unwrap();
    for _ in 0..10_000 {
        stream.write_all(CANARY).unwrap();
    }
    let stream = stream.finish().unwrap();
    for part in CANARY.windows(6) {
        for bytes in [&value, &stream, keyring.stored()] {
            assert!(!contains(bytes, part), "{}", part.escape_ascii());
        }
    }
    assert!(!contains(
        &keyring.keyed_hash(&context, CANARY),
        &CANARY[..4]
    ));
}

#[tokio::test]
async fn no_key_is_in_a_stored_keyring() {
    let keyring = keyring().await.rotated().unwrap();
    for part in key_bytes(1).windows(4) {
        assert!(!contains(keyring.stored(), part));
    }
}

/// Fails unless a text has nothing of a key, in bytes, hexadecimal or decimal digits.
fn check_text(text: &str) {
    let bytes = key_bytes(1);
    for part in bytes.windows(3) {
        let hexadecimal: String = part.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(!text.to_lowercase().contains(&hexadecimal), "{text}");
        let decimal = format!("{}, {}, {}", part[0], part[1], part[2]);
        assert!(!text.contains(&decimal), "{text}");
    }
    assert!(!contains(text.as_bytes(), CANARY), "{text}");
}

#[tokio::test]
async fn debug_shows_names_of_keys_and_nothing_else() {
    let keyring = keyring().await;
    let keys = key(1);
    let wrapped = keys.wrap(&key_bytes(2)).await.unwrap();
    let context = Context::new(CANARY);
    let mut writer = keyring.seal_stream(&context, Vec::new()).unwrap();
    writer.write_all(CANARY).unwrap();
    let shown = [
        format!("{keyring:?}"),
        format!("{keys:?}"),
        format!("{wrapped:?}"),
        format!("{writer:?}"),
        format!("{context:?}"),
        format!("{:?}", Sealing::of_everything(key(1))),
    ];
    for text in &shown {
        check_text(text);
    }
    assert!(shown[0].contains(keyring.wrapped_by().as_str()));
    let file = writer.finish().unwrap();
    let reader = keyring.open_stream(&context, &file[..]).unwrap();
    check_text(&format!("{reader:?}"));
}

#[tokio::test]
async fn errors_name_keys_and_have_no_contents() {
    let keyring = keyring().await;
    let sealed = keyring.seal(&Context::new("a"), CANARY).unwrap();
    let other = Keyring::create(&key(2)).await.unwrap();
    let wrong = Keyring::load(keyring.stored(), &key(2)).await.unwrap_err();
    let SealError::Wrap(WrapError::WrongKey { sealed_with, given }) = &wrong else {
        panic!("{wrong:?}");
    };
    assert_eq!(*sealed_with, key(1).current());
    assert_eq!(*given, [key(2).current()]);
    assert_eq!(
        wrong.to_string(),
        format!(
            "sealed with key {sealed_with}, but the given keys are {}",
            given[0]
        ),
    );
    let errors = [
        wrong,
        keyring.open(&Context::new("b"), &sealed).unwrap_err(),
        other.open(&Context::new("a"), &sealed).unwrap_err(),
        keyring.open(&Context::new("a"), CANARY).unwrap_err(),
    ];
    for error in errors {
        check_text(&format!("{error} {error:?}"));
    }
    let error = LocalKeys::from_bytes(&key_bytes(1)[..31]).unwrap_err();
    check_text(&format!("{error} {error:?}"));
}
