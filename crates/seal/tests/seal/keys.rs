//! Keys from files, variables and bytes.

use std::fs;
use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use lariat_seal::{KeyError, KeyId, KeyWrapper, LocalKeys};

use crate::{key, key_bytes};

/// A file that goes with the test.
struct KeyFile(PathBuf);

impl KeyFile {
    fn new(name: &str, contents: impl AsRef<[u8]>) -> Self {
        let name = format!("{name}-{}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, contents).expect("written");
        let file = Self(path);
        file.set_mode(0o600);
        file
    }

    #[cfg(unix)]
    fn set_mode(&self, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&self.0, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    #[cfg(not(unix))]
    fn set_mode(&self, _: u32) {}
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn hexadecimal(number: u8) -> String {
    let bytes = key_bytes(number);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_key_is_the_same_in_every_form() {
    let base64 = BASE64_STANDARD.encode(key_bytes(1));
    let forms = [
        key_bytes(1).to_vec(),
        hexadecimal(1).into_bytes(),
        format!("  {}\n", hexadecimal(1).to_uppercase()).into_bytes(),
        base64.clone().into_bytes(),
        format!("{}\r\n", base64.trim_end_matches('=')).into_bytes(),
    ];
    for (number, form) in forms.iter().enumerate() {
        let file = KeyFile::new(&format!("form-{number}"), form);
        let keys = LocalKeys::from_file(&file.0).expect("read");
        assert_eq!(keys.current(), key(1).current(), "form {number}");
    }
}

#[tokio::test]
async fn the_first_of_several_keys_wraps_and_all_unwrap() {
    let text = format!(
        "{}\n{}\n",
        hexadecimal(2),
        BASE64_STANDARD.encode(key_bytes(1))
    );
    let file = KeyFile::new("several", text);
    let keys = LocalKeys::from_file(&file.0).unwrap();
    assert_eq!(keys.current(), key(2).current());
    let old = key(1).wrap(&key_bytes(7)).await.unwrap();
    assert_eq!(*keys.unwrap(&old).await.unwrap(), key_bytes(7));
    let new = keys.wrap(&key_bytes(7)).await.unwrap();
    assert_eq!(*new.key_id(), key(2).current());
    assert!(key(1).unwrap(&new).await.is_err());
}

#[test]
fn what_is_no_key_is_refused_with_the_name_of_the_file_and_without_its_contents() {
    let short = &hexadecimal(1)[..32];
    let wrong = [
        "",
        " \n",
        "a password",
        short,
        &hexadecimal(1)[..63],
        &hexadecimal(1).replace('2', "x"),
        &"00".repeat(32),
        &format!("{} {short}", hexadecimal(1)),
        &BASE64_STANDARD.encode(&key_bytes(1)[..31]),
        &BASE64_STANDARD.encode([1; 33]),
        &"a".repeat(100_000),
    ];
    for (number, contents) in wrong.iter().enumerate() {
        let file = KeyFile::new(&format!("wrong-{number}"), contents);
        let error = LocalKeys::from_file(&file.0).expect_err(contents);
        assert!(matches!(error, KeyError::Invalid { .. }), "{error:?}");
        let text = format!("{error} {error:?}");
        assert!(text.contains(&file.0.display().to_string()), "{text}");
        if contents.len() > 2 {
            assert!(
                !text.contains(&contents[..contents.len().min(12)]),
                "{text}"
            );
        }
    }
    for length in [0, 31, 33, 64] {
        assert!(LocalKeys::from_bytes(&vec![3; length]).is_err());
    }
    assert!(LocalKeys::from_bytes(&[0; 32]).is_err(), "a placeholder");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = LocalKeys::from_file("/nowhere/key").unwrap_err();
    assert!(matches!(error, KeyError::Unreadable { .. }));
    assert_eq!(error.to_string(), "cannot read the key file /nowhere/key");
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_read_is_refused_with_what_to_do() {
    let file = KeyFile::new("exposed", hexadecimal(1));
    for mode in [0o640, 0o644, 0o604, 0o620, 0o602, 0o610, 0o777] {
        file.set_mode(mode);
        let error = LocalKeys::from_file(&file.0).expect_err("others can read it");
        let text = error.to_string();
        assert!(matches!(error, KeyError::Exposed { .. }), "{text}");
        assert!(
            text.contains(&format!("{mode:04o}")) && text.contains("chmod 600"),
            "{text}"
        );
    }
    for mode in [0o600, 0o400, 0o640, 0o440] {
        file.set_mode(mode);
        assert!(LocalKeys::from_group_file(&file.0).is_ok(), "{mode:o}");
    }
    for mode in [0o644, 0o660, 0o604, 0o444] {
        file.set_mode(mode);
        let error = LocalKeys::from_group_file(&file.0).expect_err("others can read it");
        assert!(matches!(error, KeyError::Exposed { .. }));
    }
}

/// Variables of this process cannot be set, so the test runs itself in another.
#[test]
fn a_key_in_the_environment_is_read() {
    const VARIABLE: &str = "LARIAT_SEAL_TEST_KEY";
    if std::env::var_os(VARIABLE).is_some() {
        let keys = LocalKeys::from_env(VARIABLE).expect("it is a key");
        assert_eq!(keys.current(), key(1).current());
        return;
    }
    let program = std::env::current_exe().expect("it runs");
    let child = std::process::Command::new(program)
        .args(["--exact", "keys::a_key_in_the_environment_is_read"])
        .env(VARIABLE, BASE64_STANDARD.encode(key_bytes(1)))
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

/// The last variable is one that `cargo` sets.
#[test]
fn a_variable_that_is_missing_or_no_key_is_named_and_not_shown() {
    let error = LocalKeys::from_env("LARIAT_SEAL_NOT_SET").unwrap_err();
    assert!(matches!(&error, KeyError::NoVariable(name) if name == "LARIAT_SEAL_NOT_SET"));
    let error = LocalKeys::from_env("CARGO_PKG_DESCRIPTION").unwrap_err();
    assert!(matches!(error, KeyError::Invalid { .. }));
    let text = format!("{error} {error:?}");
    assert!(text.contains("CARGO_PKG_DESCRIPTION"));
    assert!(!text.contains("Encryption at rest"), "{text}");
}

#[test]
fn an_id_has_visible_characters_only() {
    let arn = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd";
    assert_eq!(KeyId::new(arn).unwrap().to_string(), arn);
    for wrong in ["", "a b", "a\nb", "\u{1b}[31m", "ä", &"x".repeat(256)] {
        assert!(KeyId::new(wrong).is_err(), "{wrong:?}");
    }
}
