//! The compiler's messages for mistakes that users make when they write handlers.
//!
//! The messages are those of one version of the compiler, so other versions do not run them. After an update:
//! `TRYBUILD=overwrite cargo test -p lariat --test compile_fail`, and read the difference.

use std::process::Command;

/// The version whose messages are recorded.
const RUSTC: &str = "rustc 1.95.";

#[test]
fn mistakes_are_explained() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    let version = String::from_utf8(output.expect("rustc runs").stdout).expect("it is text");
    if version.starts_with(RUSTC) {
        trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
    } else {
        eprintln!("the messages of {version} are not compared with those of {RUSTC}");
    }
}
